"""The way to the server that takes writes: a fixed address, or what the sentinels say at each connect.

One for each connection that is made again and again (client, subscription). Owns no socket.
"""

import asyncio
import ssl
from contextlib import suppress
from typing import Final, NamedTuple

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.replies import ReplyError
from gateway.adapters.resp.sentinels import SentinelQuestion
from gateway.settings.redis import RedisSettings

_REFUSED_SECONDS: Final = 1.0
"""Least pause after a refused password: it may be rotated at any time, and hammering fills the server's ACL log."""
_REFUSALS: Final = frozenset({"NOAUTH", "NOPERM", "WRONGPASS"})


class Place(NamedTuple):
    """One server, with what must be said there now."""

    address: Address
    tls: ssl.SSLContext | None


class Primary:
    """`locate` before each connect, `pause` before the next one."""

    def __init__(self, address: Address, settings: RedisSettings) -> None:
        self._address = address
        self._question = SentinelQuestion(settings.sentinel_timeout_seconds)
        self._fixed = Place(address, None) if address.is_server and not address.needs_files else None
        self._told: tuple[str, int] | None = None
        self._hurry = asyncio.Event()
        self._floor_seconds = 0.0
        self.place: Place | None = self._fixed
        """Where we are, or try to be."""

    async def locate(self, connect_timeout_seconds: float) -> Place:
        """Reads files and asks sentinels each time. Raises OSError (a file), StoreUnavailable (no sentinel knows)."""
        if self._fixed is not None:
            return self._fixed
        self.place = None
        async with asyncio.timeout(connect_timeout_seconds):
            address, tls = self._address, None
            if address.needs_files:
                address, tls = await asyncio.to_thread(address.read_files)
        if address.sentinels is not None:
            found = self._told or await self._question.primary(address, address.sentinels, tls)
            # What was told meanwhile is newer than the answer: sentinels learn of a switch one after the other.
            found, self._told = self._told or found, None
            address = address.at(*found)
        self.place = Place(address, tls)
        return self.place

    @property
    def has_sentinels(self) -> bool:
        return self._address.sentinels is not None

    def moved(self, host: str, port: int) -> bool:
        """The sentinels have made this server the primary. True: the connection, or the attempt, is at another one."""
        if self.place is not None and (self.place.address.host, self.place.address.port) == (host, port):
            return False
        self._told = host, port
        self._hurry.set()
        return True

    def hurry(self) -> None:
        """The pause, or the next one, ends now."""
        self._hurry.set()

    def why(self, exc: Exception) -> str:
        """What to log of an attempt that failed; remembers whether the next one must not come soon."""
        self._floor_seconds = 0.0
        if isinstance(exc, TimeoutError):
            return type(exc).__name__
        if isinstance(exc, ReplyError) and exc.code in _REFUSALS:
            self._floor_seconds = _REFUSED_SECONDS
            return f"user or password is refused, or has too few rights ({exc.reason})"
        return str(exc)

    async def pause(self, seconds: float) -> None:
        """Before the next attempt. Ends early when the primary has moved."""
        seconds, self._floor_seconds = max(seconds, self._floor_seconds), 0.0
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        self._hurry.clear()

    def __str__(self) -> str:
        return str(self._address if self.place is None else self.place.address)


__all__ = ["Place", "Primary"]
