"""Whether a gateway's round trips are getting longer: the early warning of a network that goes bad (B7). Pure.

The P99 of the last minute against the median of those of the quarter of an hour before, which a few bad minutes do not
move; raised and lowered at different ratios.
"""

from collections import deque
from statistics import median
from typing import Final

from gateway.domain.measures import quantile

MINUTE_SECONDS: Final = 60.0
MINUTES: Final = 15
LEAST_MINUTES: Final = 3
"""Known before anybody is warned: a gateway that has just started knows no ordinary."""
STEP_SECONDS: Final = 5.0
"""Between two samples that are kept."""
RAISED_AT: Final = 2.0
LOWERED_AT: Final = 1.4
FLOOR_SECONDS: Final = 0.1
"""What is usual counts as at least this: from 2 to 8 ms nobody is warned."""
LEAST_ROUND_TRIPS: Final = 20
"""In a minute; below, its P99 means nothing."""


class RttTrend:
    """`note` every second or so. `ratio`: recent P99 by the usual one; 0 while one of them is not known."""

    __slots__ = ("_bounds", "_minute_ends_at", "_minutes", "_samples", "is_rising", "ratio")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._samples: deque[tuple[float, list[int]]] = deque()
        """Of the last minute."""
        self._minutes: deque[float] = deque(maxlen=MINUTES)
        """P99 of each minute before it."""
        self._minute_ends_at = 0.0
        self.is_rising = False
        self.ratio = 0.0

    def note(self, now: float, counts: list[int]) -> bool:
        """`counts`: of a histogram with these bounds, only growing. True: `is_rising` changed.

        A network that stays slow is the new ordinary when half of the minutes before were like it.
        """
        if self._samples and now - self._samples[-1][0] < STEP_SECONDS:
            return False
        self._samples.append((now, list(counts)))
        while self._samples[0][0] < now - MINUTE_SECONDS:
            self._samples.popleft()
        p99 = self._p99(counts)
        usual = max(FLOOR_SECONDS, median(self._minutes)) if len(self._minutes) >= LEAST_MINUTES else None
        if now >= self._minute_ends_at:
            self._minute_ends_at = now + MINUTE_SECONDS
            if p99 is not None:
                self._minutes.append(p99)
        self.ratio = 0.0 if p99 is None or usual is None else p99 / usual
        was_rising, self.is_rising = self.is_rising, self.ratio > (LOWERED_AT if self.is_rising else RAISED_AT)
        return self.is_rising is not was_rising

    def _p99(self, counts: list[int]) -> float | None:
        recent = [now - then for now, then in zip(counts, self._samples[0][1], strict=True)]
        return quantile(self._bounds, recent, 0.99) if sum(recent) >= LEAST_ROUND_TRIPS else None


__all__ = ["LEAST_MINUTES", "LEAST_ROUND_TRIPS", "MINUTES", "MINUTE_SECONDS", "STEP_SECONDS", "RttTrend"]
