"""What was seen of a release's pods, and what it says about scale-ins and evenness. Plain data and plain functions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final

WITHIN: Final = 0.15
CHANCE: Final = 3.0
LEAST_EXCESS: Final = 10
"""As `rebalance.within` is by default, and what its rules leave to chance: docs/configuration.md, design.md 7."""


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    runs: int
    """Producers' streams that come in there."""
    connections: int
    cost: int | None
    """As the ReplicaSet read it; None: not written yet."""
    is_ready: bool
    is_leaving: bool

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Pod":
        return cls(**told)


@dataclass(frozen=True, slots=True)
class Look:
    at: float
    """Unix seconds."""
    pods: tuple[Pod, ...]

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Look":
        return cls(told["at"], tuple(Pod.read(pod) for pod in told["pods"]))

    @property
    def serving(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.is_ready and not pod.is_leaving)


@dataclass(frozen=True, slots=True)
class Removal:
    """A pod that was taken away, and what all had a moment before."""

    taken: Pod
    others: tuple[Pod, ...]

    @property
    def is_fewest(self) -> bool:
        """Nobody had fewer runs; among equals nobody had clearly fewer connections."""
        return all(self.taken.runs <= pod.runs for pod in self.others)

    def told(self) -> str:
        """`12 of 12, 15, 19`: the runs of the one that went, and of all before it."""
        runs = sorted((self.taken.runs, *(pod.runs for pod in self.others)))
        return f"{self.taken.runs} of {', '.join(map(str, runs))}"


def removals(looks: Iterable[Look]) -> list[Removal]:
    """Each pod that served in one look and was leaving, or gone, in the next."""
    found: list[Removal] = []
    before: Look | None = None
    for look in looks:
        if before is not None:
            still = {pod.name for pod in look.pods if not pod.is_leaving}
            found += [
                Removal(pod, tuple(other for other in before.serving if other is not pod))
                for pod in before.serving
                if pod.name not in still
            ]
        before = look
    return found


def is_even(counts: Sequence[int]) -> bool:
    """The fullest is not so far above the mean that a gateway would give clients away."""
    if not counts:
        return False
    mean = sum(counts) / len(counts)
    return max(counts) <= mean + max(WITHIN * mean, LEAST_EXCESS, CHANCE * sqrt(mean))


__all__ = ["Look", "Pod", "Removal", "is_even", "removals"]
