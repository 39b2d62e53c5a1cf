"""What it costs to delete this gateway's pod, as a ReplicaSet compares it, and when it is worth a write.

Fewest live runs go first, among equals the fewest connections. Time comes in as an argument. Called by core.pods.cost.
"""

from dataclasses import dataclass
from typing import Final

MAX_RUNS: Final = 20_000
MAX_CONNECTIONS: Final = 99_999
"""With as many runs as there can be, the cost stays within the 31 bits that Kubernetes reads."""
LEAVING_COST: Final = -1
"""A gateway that an operator drains is taken before an empty one that serves."""
NOTABLE_SHARE: Final = 0.2
"""Of the larger figure: less changes nobody's choice, and each write wakes every watcher of pods."""
NOTABLE_CONNECTIONS: Final = 10
EXACT_AFTER: Final = 5
"""So many rests after a write any change of runs is worth another, so what calm minutes leave is exact. By default an
autoscaler waits as long before it takes a pod away."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a deletion would disturb."""

    runs: int
    """Streams of producers that come in here."""
    connections: int
    is_leaving: bool = False
    """It drains, and may be taken back."""


def cost_of(load: Load) -> int:
    """Runs decide before connections do; both are cut at what is far beyond one gateway."""
    if load.is_leaving:
        return LEAVING_COST
    return min(load.runs, MAX_RUNS) * (MAX_CONNECTIONS + 1) + min(load.connections, MAX_CONNECTIONS)


def is_notable(before: Load, now: Load) -> bool:
    """Somebody might choose otherwise: it began or ceased to be busy or to leave, or changed by a fifth."""
    if before.is_leaving or now.is_leaving:
        return before.is_leaving != now.is_leaving
    return _differs(before.runs, now.runs, 1) or _differs(before.connections, now.connections, NOTABLE_CONNECTIONS)


def _differs(before: int, now: int, least: int) -> bool:
    if (before == 0) != (now == 0):
        return True
    return abs(now - before) >= max(least, NOTABLE_SHARE * max(now, before))


@dataclass(slots=True)
class CostPlan:
    """When which cost is to be written. Nothing is known of what the pod had before: the first look is due at once."""

    every_seconds: float
    _written: Load | None = None
    _not_before: float = float("-inf")

    def due(self, now: float, load: Load) -> int | None:
        """The cost to write now; None: it is too early, or not worth it."""
        if now < self._not_before or not self._is_worth_it(now, load):
            return None
        return cost_of(load)

    def _is_worth_it(self, now: float, load: Load) -> bool:
        if self._written is None or is_notable(self._written, load):
            return True
        is_exact = load.is_leaving or load.runs == self._written.runs
        return not is_exact and now >= self._not_before + (EXACT_AFTER - 1) * self.every_seconds

    def written(self, now: float, load: Load) -> None:
        self._written, self._not_before = load, now + self.every_seconds

    def failed(self, now: float, wait_seconds: float) -> None:
        """What is there now is not known; never sooner than after the usual rest."""
        self._not_before = now + max(wait_seconds, self.every_seconds)


__all__ = ["LEAVING_COST", "MAX_CONNECTIONS", "MAX_RUNS", "CostPlan", "Load", "cost_of", "is_notable"]
