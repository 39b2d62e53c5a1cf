"""Asks the sentinels which server is the primary: one after the other, each within a bounded time.

Makes a connection for each question, since questions are rare. Called by primary and sentinel_watch.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar

from gateway.adapters.resp.address import Address, Sentinels
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.handshake import open_socket
from gateway.adapters.resp.replies import Reply
from gateway.ports import StoreUnavailable
from gateway.settings.redis_url import shown_place

ConnectionT = TypeVar("ConnectionT", bound=Connection)


async def open_sentinel(
    address: Address,
    place: tuple[str, int],
    tls: ssl.SSLContext | None,
    factory: Callable[[], ConnectionT],
    timeout_seconds: float,
) -> ConnectionT:
    """Connected, and let in where it asks for a password. Raises OSError and StoreUnavailable."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_seconds):
        link = await open_socket(address.at(*place), tls, factory)
        who = address.sentinels
        if who is not None and who.password:
            names = (who.username,) if who.username else ()
            try:
                await link.ask(pack((b"AUTH", *names, who.password)), loop.time() + timeout_seconds)
            except BaseException:
                link.abort("not let in")
                raise
    return link


class SentinelQuestion:
    """The sentinel that answered last is asked first."""

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._first = 0

    async def primary(self, address: Address, who: Sentinels, tls: ssl.SSLContext | None) -> tuple[str, int]:
        """(host, port) as the first sentinel that answers knows it. StoreUnavailable names what each one said."""
        reasons: dict[int, str] = {}
        count = len(who.places)
        for step in range(count):
            index = (self._first + step) % count
            try:
                found = await self._ask(address, who, index, tls)
            except (OSError, StoreUnavailable) as exc:  # TimeoutError is an OSError
                reasons[index] = "no answer in time" if isinstance(exc, TimeoutError) else str(exc)
                continue
            self._first = index
            return found
        told = "; ".join(f"{shown_place(*who.places[index])}: {reasons[index]}" for index in sorted(reasons))
        raise StoreUnavailable(f"no sentinel names the primary {who.service} ({told})", outcome_unknown=False)

    async def _ask(self, address: Address, who: Sentinels, index: int, tls: ssl.SSLContext | None) -> tuple[str, int]:
        loop = asyncio.get_running_loop()
        link = await open_sentinel(address, who.places[index], tls, Connection, self._timeout_seconds)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                packed = pack((b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", who.service))
                return _parse_place(await link.ask(packed, loop.time() + 2 * self._timeout_seconds))
        finally:
            link.abort("asked")


def _parse_place(reply: Reply) -> tuple[str, int]:
    if reply is None:
        raise StoreUnavailable("it does not watch a primary of this name", outcome_unknown=False)
    try:
        host, port = reply
        return host.decode("ascii"), int(port)
    except (TypeError, ValueError, AttributeError):
        raise StoreUnavailable("it is no sentinel", outcome_unknown=False) from None


__all__ = ["SentinelQuestion", "open_sentinel"]
