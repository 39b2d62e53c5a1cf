"""Plain requests to a gateway: why an open failed, history, input and control. Follows no redirect."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from yarl import URL

from relayrouter.credentials import Credentials
from relayrouter.endings import Ending, broken, error_of, refused

MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}

_NOT_ASKED = frozenset(("wait", "limit", "since"))
TRANSPORT_ERRORS = (aiohttp.ClientError, OSError, TimeoutError, ValueError)
"""What a request may raise for reasons of the network. ValueError: what answered speaks no HTTP that aiohttp knows."""


def check_url(url: str) -> str:
    """Without a trailing slash; raises ValueError with a sentence for a person, and without what may be a password."""
    parts = urlsplit(url)
    if parts.scheme not in _HTTP_SCHEMES or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("not a gateway's address; write it as https://host or http://host:8080")
    return url.rstrip("/")


def session_url(base: str, session: str, what: str, query: Mapping[str, str], *, is_socket: bool = False) -> URL:
    """`what`: ws, events, messages, input, control."""
    parts = urlsplit(base)
    scheme = (_WEBSOCKET_SCHEMES if is_socket else _HTTP_SCHEMES)[parts.scheme]
    path = f"{parts.path.rstrip('/')}/v1/sessions/{quote(session, safe='')}/{what}"
    text = f"{scheme}://{parts.netloc}{path}"
    return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)


def refused_redirects() -> aiohttp.TraceConfig:
    """For a client whose WebSockets follow no redirect either: `ws_connect` has no word for it.

    A proxy's `/login` is not the gateway's, and must not be given the token. Ends as a failed handshake.
    """

    async def refuse(_client: object, _context: object, params: aiohttp.TraceRequestRedirectParams) -> None:
        answer = params.response
        answer.close()
        raise aiohttp.WSServerHandshakeError(
            answer.request_info, answer.history, message="a redirect", status=answer.status, headers=answer.headers
        )

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(refuse)
    return trace


def retry_after_seconds(headers: Mapping[str, str] | None) -> float | None:
    """Of a Retry-After header in its number form; a date is of no use without the other host's clock."""
    value = headers.get("Retry-After") if headers is not None else None
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` None: no JSON object."""

    status: int
    body: dict[str, Any] | None
    after_seconds: float | None

    @property
    def is_ours(self) -> bool:
        """A gateway wrote it."""
        return self.body is not None and (self.status == 200 or error_of(self.body) is not None)


class Http:
    """Of one session. `base` follows the gateway that the session last spoke to."""

    def __init__(
        self, client: aiohttp.ClientSession, session: str, credentials: Credentials, timeout_seconds: float
    ) -> None:
        self.client = client
        self.session = session
        self.credentials = credentials
        self.base = ""
        self._timeout_seconds = timeout_seconds

    async def get(self, what: str, query: Mapping[str, str], *, timeout_seconds: float | None = None) -> Answer:
        """Raises TRANSPORT_ERRORS."""
        return await self._ask("GET", what, query, None, timeout_seconds)

    async def post(self, what: str, body: bytes) -> Answer:
        """Raises TRANSPORT_ERRORS."""
        return await self._ask("POST", what, {}, body, None)

    async def why(self, query: Mapping[str, str], status: int | None, after_seconds: float | None) -> Ending:
        """A channel did not open: ask for the decision alone. `status`: what answered the attempt, if anything did."""
        query = {name: value for name, value in query.items() if name not in _NOT_ASKED} | {"sdk": "1"}
        try:
            answer = await self.get("ws", query)
        except TRANSPORT_ERRORS:
            # Nobody answers anything: that says nothing of the channel.
            return broken(
                f"the upgrade was answered with {status}" if status else "no answer", is_transport=bool(status)
            )
        if answer.status != 200 or not answer.is_ours:
            return refused(answer.status, answer.body, answer.after_seconds)
        if status in (429, 503):
            return refused(status, None, after_seconds or 0.0)
        return broken("the gateway would let us in, but the channel does not open", is_transport=True)

    async def _ask(
        self, method: str, what: str, query: Mapping[str, str], body: bytes | None, timeout_seconds: float | None
    ) -> Answer:
        headers = self.credentials.headers()
        if body is not None:
            headers["Content-Type"] = "application/json"
        async with (
            asyncio.timeout(timeout_seconds or self._timeout_seconds),
            self.client.request(
                method, session_url(self.base, self.session, what, query), data=body, headers=headers,
                allow_redirects=False,
            ) as response,
        ):  # fmt: skip
            return await read_answer(response)


async def read_answer(response: aiohttp.ClientResponse) -> Answer:
    """The body is read as far as it may be ours. Raises TRANSPORT_ERRORS."""
    limit = MAX_BODY_BYTES if response.status == 200 else _MAX_ERROR_BYTES
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > limit:
            response.close()
            return Answer(response.status, None, retry_after_seconds(response.headers))
        parts.append(part)
    return Answer(response.status, _json_object(b"".join(parts)), retry_after_seconds(response.headers))


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


__all__ = [
    "TRANSPORT_ERRORS",
    "Answer",
    "Http",
    "check_url",
    "read_answer",
    "refused_redirects",
    "retry_after_seconds",
    "session_url",
]
