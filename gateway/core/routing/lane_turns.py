"""Whose turn it is when more is to be done than may be under way at once: the higher lane first. Called by webhooks.

Must never let a lane wait for ever: one turn in eight goes to whoever has waited longest.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

OLDEST_EVERY: Final = 8


class LaneTurns:
    """Within a lane first come, first served. The callers bound how many wait."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        """(rank of the lane, when it came, turn)."""
        self._came = 0
        self._given = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def turn(self, rank: int) -> AsyncIterator[None]:
        await self._take(rank)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, rank: int) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._came += 1
        entry = (rank, self._came, turn)
        self._waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif not turn.cancelled():
                self._give_back()  # it came in the same moment
            raise

    def _give_back(self) -> None:
        while self._waiting:
            self._given += 1
            is_for_oldest = self._given % OLDEST_EVERY == 0
            entry = min(self._waiting, key=lambda waiting: waiting[1] if is_for_oldest else waiting[:2])
            self._waiting.remove(entry)
            turn = entry[2]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


__all__ = ["OLDEST_EVERY", "LaneTurns"]
