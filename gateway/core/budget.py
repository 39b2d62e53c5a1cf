"""A bound in bytes on what all recoveries of a gateway hold at once; more of them wait their turn (design.md 5.1)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class ByteBudget:
    """First come, first served. More than the whole budget is granted when nothing else is held."""

    __slots__ = ("_held", "_max_bytes", "_waiters")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def held_bytes(self) -> int:
        return self._held

    @property
    def waiting(self) -> int:
        return len(self._waiters)

    @asynccontextmanager
    async def share(self, size: int) -> AsyncIterator[None]:
        """Hold `size` bytes inside the block. Cancellation leaves nothing behind."""
        await self.take(size)
        try:
            yield
        finally:
            self.give_back(size)

    async def take(self, size: int, *, until: float | None = None) -> None:
        """One `give_back` follows. TimeoutError, with nothing taken, at `until` (of the loop's clock).

        None: the wait ends by itself, as every holder's does: each holds it for a few calls to Redis, which have
        deadlines, and nobody is overtaken. So a replay waits at most for one such time for each budget's worth of
        others before it, and its connection is served, looked at and closed meanwhile like any other.
        """
        if not self._waiters and self._fits(size):
            self._held += size
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((size, granted))
        try:
            async with asyncio.timeout_at(until):
                await granted
        except (asyncio.CancelledError, TimeoutError):
            if not granted.cancelled():
                self.give_back(size)
            else:
                with suppress(ValueError):  # whoever gave back in the same moment has passed it over
                    self._waiters.remove((size, granted))
                self._grant()
            raise

    def give_back(self, size: int) -> None:
        self._held -= size
        self._grant()

    def _fits(self, size: int) -> bool:
        return self._held == 0 or self._held + size <= self._max_bytes

    def _grant(self) -> None:
        while self._waiters:
            size, granted = self._waiters[0]
            if not granted.cancelled():
                if not self._fits(size):
                    return
                self._held += size
                granted.set_result(None)
            self._waiters.popleft()


__all__ = ["ByteBudget"]
