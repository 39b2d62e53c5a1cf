"""Requests of producers and consumers: one after the other to any gateway, and what their answers mean."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
from yarl import URL

from relayrouter.backoff import Backoff
from relayrouter.credentials import Credentials, TokenUnavailable
from relayrouter.endings import error_of, refusal
from relayrouter.errors import ConflictError, RelayError
from relayrouter.gateway_round import GatewayRound
from relayrouter.hedging import HedgedConnector
from relayrouter.http import TRANSPORT_ERRORS, Answer, read_answer
from relayrouter.options import TokenSource
from relayrouter.producer_lines import line_of
from relayrouter.producer_options import ProducerTiming, unavailable

_PASSING = frozenset({408, 425, 429})
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer as a producer judges it. `status` 0: none of a gateway. `is_unknown`: it may have taken effect."""

    status: int
    body: Mapping[str, Any]
    cause: str
    is_unknown: bool = False
    after_seconds: float | None = None
    is_token_renewed: bool = False
    """The token was refused, and the callback gives another one."""

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """A page of a proxy is a failure of the transport, whatever its status; but a body that it finds too long."""
        if answer.body is None or (answer.status >= 300 and error_of(answer.body) is None):
            status = answer.status if answer.status == 413 else 0
            return cls(status, {}, f"HTTP status {answer.status} from something that is no gateway", is_unknown=True)
        # A server that failed in the middle of it may have appended.
        cause = f"HTTP status {answer.status}"
        return cls(answer.status, answer.body, cause, answer.status >= 500, answer.after_seconds)

    @property
    def is_good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Asking again would bring the same answer."""
        return 300 <= self.status < 500 and self.status not in _PASSING and not self.is_token_renewed

    @property
    def error(self) -> Mapping[str, Any]:
        return error_of(dict(self.body)) or {}

    @property
    def details(self) -> Mapping[str, Any]:
        details = self.error.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def code(self) -> str | None:
        code = self.error.get("code")
        return code if isinstance(code, str) else None

    @property
    def message(self) -> str:
        return str(self.error.get("message") or self.cause)

    def to_error(self) -> RelayError:
        """The typed error of an answer that is final."""
        if self.code in ("conflict", "fenced"):
            return ConflictError(self.message, code=self.code, status=self.status, details=self.details)
        return refusal(self.status, self.error or {"code": "refused", "message": self.cause})


class Gateways:
    """The gateways that one producer knows, of which it speaks to one at a time. `open` before, `close` after."""

    def __init__(
        self,
        urls: tuple[str, ...],
        token: TokenSource | None,
        timing: ProducerTiming,
        rng: random.Random | None = None,
        on_trouble: Callable[[str], None] = lambda _cause: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`on_trouble` hears of each request that is repeated. `tls`: None for the system's authorities."""
        self.timing = timing
        self.on_trouble = on_trouble
        self._tls = tls
        self._credentials = Credentials(token, timing.request_timeout)
        self._client: aiohttp.ClientSession | None = None
        self._failing_since: float | None = None
        rng = rng or random.Random()  # noqa: S311  jitter and order, not a secret
        self._backoff = Backoff(timing.backoff_base, timing.backoff_max, rng)
        self._round = GatewayRound(urls, rng)

    def open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.timing.connect_timeout)
        self._client = aiohttp.ClientSession(timeout=timeout, connector=HedgedConnector(self._tls))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def move(self) -> None:
        """The next request goes to the next gateway."""
        self._round.move()

    async def send(
        self,
        method: str,
        path: str,
        body: "bytes | AsyncIterable[bytes] | None" = None,
        *,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        timeout_seconds: float | None = None,
        is_elsewhere: bool = False,
        is_unbounded: bool = False,
    ) -> Reply:
        """Once. `key`: makes a repeat harmless. `is_elsewhere`: to the gateway after the current one."""
        if self._client is None:
            raise RelayError("not open: use it as `async with`", code="closed")
        base = self._round.next_url if is_elsewhere else self._round.url
        limit = None if is_unbounded else timeout_seconds or self.timing.request_timeout
        try:
            token = await self._credentials.fetch()
        except TokenUnavailable as exc:
            return Reply(0, {}, exc.message)
        headers = self._credentials.headers()
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            async with (
                asyncio.timeout(limit),
                self._client.request(
                    method, _url(base, path, query), data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                reply = Reply.of(await read_answer(response))
        except aiohttp.ClientConnectorError as exc:
            return Reply(0, {}, str(exc))
        except TRANSPORT_ERRORS as exc:
            return Reply(0, {}, str(exc) or "no answer in time", is_unknown=True)
        return self._judged(reply, token)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        wait_seconds: float = 0.0,
        is_patient: bool = False,
    ) -> Mapping[str, Any]:
        """Repeated at one gateway after the other until one answers: for requests that may be repeated.

        Raises RelayError: the typed one of a refusal; `unavailable` after `give_up_after`, unless `is_patient`.
        """
        data = None if body is None else line_of(body)
        while True:
            limit = self.timing.request_timeout + wait_seconds
            reply = await self.send(method, path, data, query=query, key=key, timeout_seconds=limit)
            if reply.is_good:
                self.note_success()
                return reply.body
            if reply.is_final:
                raise reply.to_error()
            await self.pause(reply, is_patient=is_patient)

    async def pause(self, reply: Reply, *, is_moving: bool = True, is_patient: bool = False) -> None:
        """Before the next try, elsewhere when `is_moving`. Raises RelayError when nothing helped for too long.

        A quota is neither trouble nor this gateway's: it is waited for here, however long others use it up.
        """
        if reply.code == "quota_exceeded":
            is_moving, is_patient, self._failing_since = False, True, None
        now = time.monotonic()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since >= self.timing.give_up_after and not is_patient:
            self._failing_since = None
            raise unavailable(self.timing.give_up_after, reply.message)
        if is_moving:
            self._round.move()
        self.on_trouble(f"trying again: {reply.message}")
        await asyncio.sleep(self._backoff.next_delay_seconds(reply.after_seconds))

    def note_success(self) -> None:
        self._failing_since = None
        self._backoff.reset()

    def _judged(self, reply: Reply, token: str | None) -> Reply:
        if reply.status == 401 and token is not None:
            return replace(reply, is_token_renewed=self._credentials.may_try_again())
        if reply.status:
            self._credentials.accepted()
        return reply


async def close_all(*closings: Callable[[], Awaitable[None]]) -> None:
    """One after the other; a cancellation in the middle leaves none of them out."""
    async with AsyncExitStack() as stack:
        for closing in reversed(closings):
            stack.push_async_callback(closing)


def path_of(*parts: str) -> str:
    """Below /v1, each part quoted."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _url(base: str, path: str, query: Mapping[str, str] | None) -> URL:
    parts = urlsplit(base)
    text = f"{_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}{path}"
    return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)


__all__ = ["Gateways", "Reply", "close_all", "path_of"]
