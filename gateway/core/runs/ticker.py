"""One timer for what all open runs hold back: the earliest deadline decides when it fires (issue B, CPU per token).

A run is in the heap at most once; a deadline that moved meanwhile is found when its old one comes.
"""

import asyncio
import heapq
from typing import Final, Protocol

from gateway.ports import Clock

EARLY_MS: Final = 1.0
"""A timer may fire a rounding before its time: what is due so soon is due."""


class Ticking(Protocol):
    def tick(self, now_ms: float) -> float | None:
        """Let go what is due. The next deadline; None: nothing is held, or the run is closed. Must not raise."""
        ...


class Ticker:
    """One per gateway; times are ms of `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Ticking]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0.0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, due_ms: float, run: Ticking) -> None:
        """`run.tick` is called at `due_ms`; only when it is not waiting already."""
        self._count += 1
        heapq.heappush(self._heap, (due_ms, self._count, run))
        if self._timer is None or due_ms < self._timer_ms:
            self._arm()

    def fire(self) -> None:
        """Everything that is due now."""
        self._timer = None
        now_ms = self._clock() * 1000 + EARLY_MS
        due: list[Ticking] = []
        while self._heap and self._heap[0][0] <= now_ms:
            due.append(heapq.heappop(self._heap)[2])
        for run in due:
            next_ms = run.tick(now_ms)
            if next_ms is not None:
                self._count += 1
                heapq.heappush(self._heap, (next_ms, self._count, run))
        if self._heap and self._timer is None:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = self._heap[0][0]
        delay_seconds = max(0.0, self._timer_ms / 1000 - self._clock())
        self._timer = asyncio.get_running_loop().call_later(delay_seconds, self.fire)


__all__ = ["EARLY_MS", "Ticker", "Ticking"]
