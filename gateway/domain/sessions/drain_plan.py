"""When each client of a draining gateway is told, asked to come back, and closed (design.md 7, C7, K01). Pure.

The deadline wins over the pace: when time is short sockets close early, but the returns keep to what the other gateways
can admit, also beyond this gateway's own life. A client returns before its socket is closed wherever there is time:
then it makes the new one before the old one breaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil
from typing import Final, NamedTuple

HEADSUP_SECONDS: Final = 0.5
"""A client in a run is told so long before its turn, and not at the beginning: its run may end before."""


class Standing(IntEnum):
    """Where a client's session is, in the order of leaving."""

    IDLE = 0
    """It has no run, or nobody knows of one."""
    BETWEEN_RUNS = 1
    IN_RUN = 2
    """In mid-sentence: it leaves last, or right after its run's end."""


class DrainSlot(NamedTuple):
    """Seconds from the beginning; `return_after_ms` from the moment at which the client is told."""

    told_after_seconds: float
    return_after_ms: int
    close_after_seconds: float

    @property
    def return_at_seconds(self) -> float:
        return self.told_after_seconds + self.return_after_ms / 1000


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """`time_left_seconds`: until all must be closed; may be negative."""

    pace_seconds: float
    window_seconds: float
    time_left_seconds: float
    overlap_seconds: float
    returns_per_second: float

    @property
    def close_span_seconds(self) -> float:
        """All closes are within it."""
        return max(0.0, min(self.window_seconds, self.time_left_seconds))

    @property
    def overlap(self) -> float:
        """From a client's slot to the close of its old socket; half of a short time at most."""
        return min(self.overlap_seconds, self.close_span_seconds / 2)

    def spacing_seconds(self, count: int) -> float:
        """Between two returns: the pace where there is time for it, less where not, never above the others' budget."""
        there_is = self.close_span_seconds - self.overlap
        return max(1 / self.returns_per_second, min(self.pace_seconds, there_is / count))


class Returns:
    """The calendar of returns: so many a second at most, whoever takes a place. Its clock begins with the drain."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._next: dict[int, int] = {}
        """Taken place -> where a free one may be found."""

    def take(self, at_seconds: float) -> float:
        """The first free moment from then on."""
        place = ceil(at_seconds * self._per_second - 1e-9)
        passed = []
        while (following := self._next.get(place)) is not None:
            passed.append(place)
            place = following
        for taken in passed:
            self._next[taken] = place + 1
        self._next[place] = place + 1
        return max(at_seconds, place / self._per_second)


def plan_drain(standings: Sequence[Standing], times: DrainTimes, returns: Returns) -> list[DrainSlot]:
    """One slot for each client, in the order given: idle ones leave first, those in a run last."""
    count = len(standings)
    if not count:
        return []
    spacing = times.spacing_seconds(count)
    slots = [DrainSlot(0.0, 1, 0.0)] * count
    order = sorted(range(count), key=standings.__getitem__)
    for turn, index in enumerate(order):
        return_at = returns.take((turn + 1) * spacing)
        slots[index] = _slot(return_at, times, is_told_late=standings[index] is Standing.IN_RUN)
    return slots


def early_slot(now_seconds: float, times: DrainTimes, returns: Returns) -> DrainSlot:
    """For a client whose run has ended before its turn: it leaves now, as soon as the others can take it."""
    return_at = returns.take(now_seconds)
    close_at = max(now_seconds, min(return_at + times.overlap, times.close_span_seconds))
    return DrainSlot(now_seconds, _ms(return_at - now_seconds), close_at)


def _slot(return_at: float, times: DrainTimes, *, is_told_late: bool) -> DrainSlot:
    close_at = min(return_at + times.overlap, times.close_span_seconds)
    told_at = max(0.0, min(return_at, close_at) - HEADSUP_SECONDS) if is_told_late else 0.0
    return DrainSlot(told_at, _ms(return_at - told_at), close_at)


def _ms(seconds: float) -> int:
    """At least one: zero would be no delay but an order to come at once."""
    return max(1, round(seconds * 1000))


__all__ = ["HEADSUP_SECONDS", "DrainSlot", "DrainTimes", "Returns", "Standing", "early_slot", "plan_drain"]
