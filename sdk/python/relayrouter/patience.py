"""Waits of a session that can be cut short: by the network that is back, by a probe, by news."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from relayrouter.channel import TICK_SECONDS


class Patience:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._news = asyncio.Event()
        self._is_hurried = False
        self.is_online = True
        """What the platform says."""

    def wake(self) -> None:
        """Something changed: look again."""
        self._news.set()

    def hurry(self) -> None:
        """The wait of now is over, unless the server asked for it."""
        self._is_hurried = True
        self._news.set()

    async def until_news(self, seconds: float | None) -> None:
        """At most so long. News of before does not count."""
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def wait(self, seconds: float, *, is_asked_for: bool) -> None:
        """Offline it ends at once: then there is something else to wait for."""
        until = self._clock() + seconds
        self._is_hurried = False
        while (left := until - self._clock()) > TICK_SECONDS and self.is_online:
            await self.until_news(left)
            if self._is_hurried and not is_asked_for:
                return


__all__ = ["Patience"]
