"""Posts items to webhook receivers (ports.WebhookPoster). No redirects, no proxies of the environment, no cookies.

A private address is refused where the socket for it would be made, after resolving: a name that changes its answer in
between leads nowhere else (DNS rebinding).
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiohttp

from gateway import __version__
from gateway.adapters.webhook.addresses import ForbiddenAddress, is_public
from gateway.adapters.webhook.signature import ATTEMPT, ID, SIGNATURE, TIMESTAMP, signature
from gateway.ports import Posted, PostOutcome
from gateway.settings import Receiver

MAX_AFTER_SECONDS: Final = 300.0
"""A receiver may ask for so much patience at most."""
CONNECTIONS: Final = 64


class HttpPoster:
    """One per gateway; makes its connections when the first item is there. `close` once."""

    def __init__(self, wall_clock: Callable[[], float], secrets: Mapping[str, bytes]) -> None:
        """`secrets`: of each receiver that is ever posted to, by its name."""
        self._wall_clock = wall_clock
        self._secrets = secrets
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        """By whether private addresses are allowed: connections are not shared between the two."""

    async def post(
        self, receiver: Receiver, body: bytes, *, item_id: str, attempt: int, traceparent: str | None
    ) -> Posted:
        timestamp = int(self._wall_clock())
        headers = {
            "Content-Type": "application/json",
            ID: _as_header(item_id),
            ATTEMPT: str(attempt),
            TIMESTAMP: str(timestamp),
            SIGNATURE: signature(self._secrets[receiver.name], timestamp, body),
        }
        if traceparent is not None:
            headers["traceparent"] = traceparent
        try:
            async with (
                asyncio.timeout(receiver.timeout_seconds),
                self._session(may_be_private=receiver.allow_private).post(
                    receiver.url, data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                # The answer's body is of no interest, and may be endless: the connection goes with it.
                outcome = PostOutcome.OK if 200 <= response.status < 300 else PostOutcome.REFUSED
                after = _after_seconds(response.headers.get("Retry-After"))
                return Posted(outcome, f"status {response.status}", after)
        except aiohttp.ClientConnectorError as exc:
            if _is_forbidden(exc):
                return Posted(PostOutcome.FORBIDDEN, "its address is not public, and allow_private is not set")
            return Posted(PostOutcome.FAILED, "no connection")
        except TimeoutError:
            return Posted(PostOutcome.FAILED, f"no answer within {receiver.timeout_seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return Posted(PostOutcome.FAILED, type(exc).__name__)

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _session(self, *, may_be_private: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(may_be_private)
        if session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS, use_dns_cache=False, socket_factory=_any_socket if may_be_private else _public_socket
            )
            session = self._sessions[may_be_private] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                headers={"User-Agent": f"RelayRouter/{__version__}", "Accept-Encoding": "identity"},
            )
        return session


def _any_socket(info: Any) -> socket.socket:
    family, kind, proto = info[:3]
    return socket.socket(family, kind, proto)


def _public_socket(info: Any) -> socket.socket:
    """Called with the very address that is connected to next."""
    if not is_public(str(info[4][0])):
        raise ForbiddenAddress("not a public address")
    return _any_socket(info)


def _is_forbidden(exc: BaseException) -> bool:
    """Somewhere among what led to it: connecting to several addresses gathers their errors."""
    seen: list[BaseException | None] = [exc]
    while seen:
        one = seen.pop()
        if isinstance(one, ForbiddenAddress):
            return True
        if isinstance(one, BaseExceptionGroup):
            seen += one.exceptions
        if one is not None:
            seen += [one.__cause__, getattr(one, "os_error", None)]
    return False


def _as_header(text: str) -> str:
    """Ids are printable, but not all ASCII: percent-encoded then."""
    return "".join(
        char if "!" <= char <= "~" and char != "%" else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in text
    )


def _after_seconds(value: str | None) -> float:
    try:
        return min(max(0.0, float(value or 0)), MAX_AFTER_SECONDS)
    except ValueError:
        return 0.0


__all__ = ["HttpPoster"]
