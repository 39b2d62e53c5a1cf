"""Whose turn it is to connect: a place and the memory for its first page, both before one deadline (docs/admission.md).

Must never keep a place for a client that has left, nor let the many of one kind shut out another from places; memory is
first come, first served. Called by core.door.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import cycle
from typing import Final

from gateway.core.budget import ByteBudget
from gateway.domain.admission.kinds import Kind
from gateway.domain.wire.errors import ErrorCode, RelayError

WAIT_SECONDS: Final = 5.0
"""For place and memory together; then the client is better off elsewhere."""
AFTER_MS: Final = (2_000, 4_000)
"""When to come back, one moment of it for each. As long as for a place of the gate, its jitter included."""
ORDER: Final = (*[Kind.RESUME] * 3, Kind.NEW, *[Kind.RESUME] * 3, Kind.READ)
"""Whose turn it is, round and round; a kind of which nobody waits is passed over.

Who was cut is in the middle of a text and goes first, but however many they are, each kind has one turn of eight.
"""


def _is_there() -> None:
    """Nobody looks whether the client has left."""


class Turns:
    """One per gateway. Within a kind first come, first served."""

    __slots__ = (
        "_deal", "_free", "_memory", "_page_bytes", "_queues", "_refused", "_rng", "_wait_seconds", "_without_memory",
        "most",
    )  # fmt: skip

    def __init__(
        self,
        most: int,
        memory: ByteBudget,
        page_bytes: int,
        refused: Mapping[Kind, Counter[str]],
        rng: random.Random,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`page_bytes` of `memory` for each turn; `refused`: where it is counted who had none."""
        self.most = most
        self._free = most
        self._memory = memory
        self._page_bytes = page_bytes
        self._refused = refused
        self._rng = rng
        self._wait_seconds = wait_seconds
        self._queues: dict[Kind, deque[asyncio.Future[None]]] = {kind: deque() for kind in Kind}
        self._deal = cycle(ORDER)
        self._without_memory = 0

    @property
    def taken(self) -> int:
        """Places; of those who still wait for memory, too."""
        return self.most - self._free

    @property
    def waiting(self) -> int:
        """For a place or, with one, for memory."""
        return sum(map(len, self._queues.values())) + self._without_memory

    @asynccontextmanager
    async def turn(self, kind: Kind, check_present: Callable[[], None] = _is_there) -> AsyncIterator[None]:
        """RelayError BUSY when it does not come in time; whatever `check_present` raises when it comes too late."""
        until = asyncio.get_running_loop().time() + self._wait_seconds
        await self._take_place(kind, until)
        try:
            check_present()
            await self._take_memory(kind, until)
            try:
                check_present()
                yield
            finally:
                self._memory.give_back(self._page_bytes)
        finally:
            self._give_back()

    async def _take_place(self, kind: Kind, until: float) -> None:
        """No timer while there is no queue."""
        if self._free > 0:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        queue = self._queues[kind]
        queue.append(place)
        try:
            async with asyncio.timeout_at(until):
                await place
        except BaseException as exc:
            if place.done() and not place.cancelled():
                self._give_back()  # it came in the same moment
            elif place in queue:
                queue.remove(place)
            if isinstance(exc, TimeoutError):
                raise self._busy(kind, "handshakes", "too many clients are connecting, try again") from None
            raise

    async def _take_memory(self, kind: Kind, until: float) -> None:
        self._without_memory += 1
        try:
            await self._memory.take(self._page_bytes, until=until)
        except TimeoutError:
            raise self._busy(kind, "recoveries", "too many clients are being brought up to date, try again") from None
        finally:
            self._without_memory -= 1

    def _give_back(self) -> None:
        """The next one's, or a free one."""
        for _ in ORDER:
            queue = self._queues[next(self._deal)]
            while queue:
                place = queue.popleft()
                if not place.done():
                    place.set_result(None)
                    return
                # Its owner was cancelled just now; it finds itself gone.
        self._free += 1

    def _busy(self, kind: Kind, reason: str, text: str) -> RelayError:
        """They gave up in one moment, and shall not come back in one."""
        self._refused[kind][reason] += 1
        after_ms = round(self._rng.uniform(*AFTER_MS))
        return RelayError(ErrorCode.BUSY, text, {"reason": reason}, after_ms, is_spread=True)


__all__ = ["AFTER_MS", "ORDER", "WAIT_SECONDS", "Turns"]
