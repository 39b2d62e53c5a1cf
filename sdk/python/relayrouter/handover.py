"""Between the network and the application: what was received and not yet taken, in order, bounded by bytes.

A full buffer stops the reading, nothing is dropped. One taker at a time.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from relayrouter.cursor import Cursor
from relayrouter.errors import RelayError
from relayrouter.messages import TEXT_KINDS, Frame
from relayrouter.place import Step
from relayrouter.segments import can_join, ends_sentence, join

_OVERHEAD_BYTES: Final = 128
_TICK_SECONDS: Final = 0.001


@dataclass(slots=True, eq=False)
class Item:
    """`cursor`: the position after it. `is_skipped`: it moves the place and is not shown."""

    frame: Frame
    cursor: Cursor
    missing: tuple[int, int] | None
    received_at: float
    is_skipped: bool = False

    @property
    def size_bytes(self) -> int:
        return self.frame.size_bytes + _OVERHEAD_BYTES


class Over(Exception):
    """Everything was taken and nothing follows. `error`: why, None after an orderly close."""

    def __init__(self, error: RelayError | None) -> None:
        super().__init__()
        self.error = error


class Handover:
    """`joins_now`: whether whole segments are wanted at this moment."""

    def __init__(
        self, max_bytes: int, join_after_seconds: float, joins_now: Callable[[], bool], clock: Callable[[], float]
    ) -> None:
        self._max_bytes = max_bytes
        self._join_after_seconds = join_after_seconds
        self._joins_now = joins_now
        self._clock = clock
        self._items: deque[Item] = deque()
        self._bytes = 0
        self._skipped_runs: set[str] = set()
        self._has_news = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._over: Over | None = None

    @property
    def is_full(self) -> bool:
        return self._bytes >= self._max_bytes

    def lag_seconds(self) -> float:
        """How long the oldest item has been waiting."""
        return self._clock() - self._items[0].received_at if self._items else 0.0

    def put(self, step: Step) -> None:
        """Also when it is full: the reader asks for room after each frame."""
        frame = step.frame
        if frame.run is not None and frame.kind in ("run_start", "run_end"):
            self._skipped_runs.discard(frame.run)
        item = Item(frame, step.cursor, step.missing, self._clock(), self._is_skipped(frame))
        self._items.append(item)
        self._bytes += item.size_bytes
        if self.is_full:
            self._has_room.clear()
        self._has_news.set()

    def skip(self, run: str) -> None:
        """Interrupted: from here on none of the run's text is handed out, whatever is on its way."""
        self._skipped_runs.add(run)
        for item in self._items:
            item.is_skipped = item.is_skipped or self._is_skipped(item.frame)

    async def room(self) -> None:
        await self._has_room.wait()

    def close(self, error: RelayError | None) -> None:
        """What is here can still be taken."""
        self._over = Over(error)
        self._has_room.set()
        self._has_news.set()

    async def take(self) -> Item:
        """The next item, or several that were joined. Raises Over. Cancelling it loses nothing."""
        while True:
            item, wait_seconds = self._next()
            if item is not None:
                return item
            if self._over is not None and not self._items:
                raise self._over
            self._has_news.clear()
            try:
                async with asyncio.timeout(wait_seconds):
                    await self._has_news.wait()
            except TimeoutError:
                continue

    def _next(self) -> tuple[Item | None, float | None]:
        """What may be taken now, or how long to wait for more of it."""
        if not self._items:
            return None, None
        first = self._items[0]
        count, wait_seconds = self._joinable(first) if self._joins_now() else (1, None)
        if not count:
            return None, wait_seconds
        taken = self._pop()
        for _ in range(count - 1):
            more = self._pop()
            taken = Item(join(taken.frame, more.frame), more.cursor, taken.missing, taken.received_at, more.is_skipped)
        return taken, None

    def _joinable(self, first: Item) -> tuple[int, float | None]:
        """How many items make one segment; 0: its end may still come within so many seconds."""
        if first.frame.kind != "delta" or first.is_skipped:
            return 1, None
        joined, count, complete = first.frame, 1, 1 if ends_sentence(first.frame) else 0
        is_followed = False
        for item in islice(self._items, 1, None):
            if item.is_skipped != first.is_skipped or item.missing is not None or not can_join(joined, item.frame):
                is_followed = True
                break
            joined = join(joined, item.frame)
            count += 1
            if ends_sentence(item.frame):
                complete = count
        left = first.received_at + self._join_after_seconds - self._clock()
        if complete:
            return complete, None
        if is_followed or self._over is not None or left <= _TICK_SECONDS:
            return count, None
        return 0, left

    def _pop(self) -> Item:
        item = self._items.popleft()
        self._bytes -= item.size_bytes
        if not self.is_full:
            self._has_room.set()
        return item

    def _is_skipped(self, frame: Frame) -> bool:
        return frame.run in self._skipped_runs and (frame.kind in TEXT_KINDS or frame.kind == "snapshot")


__all__ = ["Handover", "Item", "Over"]
