"""Watermarks: how late the event loop and how full the memory may be before clients are refused. Pure state.

First new ones are refused, those that come back later; open connections never. Each mark is left lower than it was
reached, so that a gateway at its limit does not open and close its door by turns.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from gateway.domain.admission.kinds import Kind

LAG_SAMPLES: Final = 5
"""The mean of so many counts."""
LAG_CAP: Final = 2.0
"""Times the mark, no sample counts for more: three of five must be late. One alone (a frozen process, one large
replay) refuses nobody."""
LAG_FALL: Final = 0.5
"""Of the mark it was reached at."""
MEMORY_FALL: Final = 0.05
"""Less of the limit."""


class Openness(IntEnum):
    """Whom the watermarks let in."""

    OPEN = 0
    NO_NEW = 1
    NONE = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Memory(NamedTuple):
    """Bytes; 0: unknown."""

    used_bytes: int
    limit_bytes: int

    @property
    def share(self) -> float:
        """Of the limit; 0 where none is known: then nobody is refused for it."""
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0


@dataclass(slots=True)
class Watermark:
    """Reached at `rise`, left below `fall`."""

    rise: float
    fall: float
    is_reached: bool = False

    def observe(self, value: float) -> None:
        self.is_reached = value >= (self.fall if self.is_reached else self.rise)


@dataclass(frozen=True, slots=True)
class Marks:
    """Seconds of lag, and shares of the memory limit: for new clients, and for those that come back."""

    new_lag_seconds: float
    resume_lag_seconds: float
    new_memory_share: float
    resume_memory_share: float


@dataclass(slots=True)
class Pressure:
    """`observe_*` are told from time to time."""

    marks: Marks
    lag_seconds: float = 0.0
    """Mean of the last samples."""
    _samples: deque[float] = field(default_factory=lambda: deque([0.0] * LAG_SAMPLES, LAG_SAMPLES))
    _lag: tuple[Watermark, Watermark] = field(init=False)
    _memory: tuple[Watermark, Watermark] = field(init=False)

    def __post_init__(self) -> None:
        marks = self.marks
        lags = (marks.new_lag_seconds, marks.resume_lag_seconds)
        shares = (marks.new_memory_share, marks.resume_memory_share)
        self._lag = (Watermark(lags[0], lags[0] * LAG_FALL), Watermark(lags[1], lags[1] * LAG_FALL))
        self._memory = (Watermark(shares[0], shares[0] - MEMORY_FALL), Watermark(shares[1], shares[1] - MEMORY_FALL))

    def observe_lag(self, seconds: float) -> None:
        """How late one timer was."""
        self._samples.append(seconds)
        self.lag_seconds = sum(self._samples) / LAG_SAMPLES
        for mark in self._lag:
            most = mark.rise * LAG_CAP
            mark.observe(sum(min(sample, most) for sample in self._samples) / LAG_SAMPLES)

    def observe_memory(self, share: float) -> None:
        """Of the limit."""
        for mark in self._memory:
            mark.observe(share)

    @property
    def openness(self) -> Openness:
        if self._lag[1].is_reached or self._memory[1].is_reached:
            return Openness.NONE
        return Openness.NO_NEW if self._lag[0].is_reached or self._memory[0].is_reached else Openness.OPEN

    def refuses(self, kind: Kind) -> str | None:
        """Why: lag or memory; None: it does not."""
        which = 0 if kind is Kind.NEW else 1
        if self._memory[which].is_reached:
            return "memory"
        return "lag" if self._lag[which].is_reached else None


__all__ = ["LAG_CAP", "LAG_SAMPLES", "MEMORY_FALL", "Marks", "Memory", "Openness", "Pressure", "Watermark"]
