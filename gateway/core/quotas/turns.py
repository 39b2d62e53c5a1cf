"""Streams of one tenant that wait for its rate: one after the other, first come first served, each for one step.

One timer for all of them: none wakes to find that another one took what there was. Called by Meter.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

LEAST_SECONDS: Final = 0.002
"""Between two looks: what the last one read is charged by then, and rounding makes no loop of them."""
LONGEST_SECONDS: Final = 2.0
"""Between two looks: meanwhile the share may have grown."""
PATIENT_SECONDS: Final = 2.0
"""So long streams leave a reserve to requests that would be refused; then one takes its turn like them."""


class StreamTurns:
    """Of one tenant. Bounded by the streams that a gateway has open."""

    __slots__ = ("_debt_seconds", "_handle", "_let_on_at", "_waiting")

    def __init__(self, debt_seconds: Callable[[bool], float]) -> None:
        """`debt_seconds(is_patient)`: 0 when the next one may go on."""
        self._debt_seconds = debt_seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._handle: asyncio.TimerHandle | None = None
        self._let_on_at = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self) -> None:
        """Until it is the caller's turn."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            if not (seconds := self._debt_seconds(True)):
                return
            self._let_on_at = loop.time()
            if self._handle is None:
                self._arm(seconds)
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        finally:
            if turn in self._waiting:  # cancelled before
                self._waiting.remove(turn)

    def _arm(self, seconds: float) -> None:
        delay = min(LONGEST_SECONDS, max(LEAST_SECONDS, seconds))
        self._handle = asyncio.get_running_loop().call_later(delay, self._look)

    def _look(self) -> None:
        self._handle = None
        if not self._waiting:
            return
        now = asyncio.get_running_loop().time()
        seconds = self._debt_seconds(now - self._let_on_at < PATIENT_SECONDS)
        if seconds:
            self._arm(seconds)
            return
        self._let_on_at = now
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_result(None)
        self._arm(LEAST_SECONDS)


__all__ = ["LONGEST_SECONDS", "PATIENT_SECONDS", "StreamTurns"]
