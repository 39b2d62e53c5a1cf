"""How many connections a gateway that has more than its share asks to go elsewhere, and when (design.md 7). Pure.

Slow on purpose: a cluster that grew is even again in minutes, and nobody notices. Each gateway judges only itself, by
what the others say of themselves; two that disagree do no harm: what either moves is bounded by its own excess.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from typing import Final

MINUTE_SECONDS: Final = 60.0
STEPS_A_MINUTE: Final = 12
"""The budget of a minute is spent in so many parts, not at its beginning."""
AIM_SHARE: Final = 0.5
"""Once it began it goes on to the middle of `within`, as some come back: it does not begin and end by turns."""
LEAST_EXCESS: Final = 10
CHANCE: Final = 3.0
"""A smaller excess, or one of fewer standard deviations, is what a balancer by chance makes."""
SAMPLE_WEIGHT: Final = 0.2
"""Of a mean that was taken over some of the others: one such sample may be a tenth off."""
JUDGED_AFTER_SECONDS: Final = 60.0
"""Whoever was asked to leave is back by then, or lives elsewhere."""
LEAST_JUDGED: Final = 20
FUTILE_SHARE: Final = 0.8
"""So many of those asked came back here: the balancer in front goes by a hash, and moves are useless. Chance alone
brings half of them back where there are two gateways."""
FUTILE_REST_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class RebalanceRules:
    """`within`: the share above the mean over all serving gateways that is even enough."""

    within: float
    per_minute: int
    patience_seconds: float


class Rebalance:
    """One per gateway. `step` about every five seconds; monotonic seconds come in."""

    __slots__ = ("_above_since", "_asked", "_back", "_gone", "_mean", "_rests_until", "_rules", "is_shedding")

    def __init__(self, rules: RebalanceRules) -> None:
        self._rules = rules
        self._above_since: float | None = None
        self._asked: deque[tuple[float, int]] = deque()
        """Of the last minute."""
        self._rests_until = float("-inf")
        self._gone = self._back = 0
        self._mean: float | None = None
        self.is_shedding = False

    def step(self, now: float, own: int, others: Sequence[int], leaving: int = 0, *, is_sample: bool = False) -> int:
        """How many may be asked to leave now. `own` still has the `leaving`, who were asked and are not gone yet.

        Never more than would bring it well within `within`, never more than the budget of the running minute.
        `is_sample`: there are more others than these.
        """
        if not others or now < self._rests_until:
            self._stop()
            return 0
        stays = own - leaving
        mean = (own + sum(others)) / (1 + len(others))
        if is_sample and self._mean is not None:
            mean = SAMPLE_WEIGHT * mean + (1 - SAMPLE_WEIGHT) * self._mean
        self._mean = mean
        excess = floor(stays - mean * (1 + self._rules.within * AIM_SHARE))
        if not self.is_shedding:
            self._look_for_a_start(now, stays, mean)
        elif excess <= 0 and not leaving:  # of those who are asked some come back here: it is even once all are settled
            self._stop()
        if not self.is_shedding:
            return 0
        return max(0, min(excess, ceil(self._rules.per_minute / STEPS_A_MINUTE), self._left_of_the_minute(now)))

    def asked(self, now: float, count: int) -> None:
        """So many were asked to leave."""
        if count:
            self._asked.append((now, count))

    def judge(self, now: float, gone: int, back: int) -> bool:
        """What became of some of them. True: it is futile, and it rests for a while."""
        self._gone += gone
        self._back += back
        judged = self._gone + self._back
        if judged < LEAST_JUDGED:
            return False
        is_futile = self._back > judged * FUTILE_SHARE
        self._gone = self._back = 0
        if is_futile:
            self._rests_until = now + FUTILE_REST_SECONDS
            self._stop()
        return is_futile

    def _look_for_a_start(self, now: float, stays: int, mean: float) -> None:
        least = max(LEAST_EXCESS, CHANCE * sqrt(mean))
        if stays <= mean * (1 + self._rules.within) or stays - mean < least:
            self._above_since = None
        elif self._above_since is None:
            self._above_since = now
        if self._above_since is not None and now - self._above_since >= self._rules.patience_seconds:
            self.is_shedding = True

    def _left_of_the_minute(self, now: float) -> int:
        while self._asked and self._asked[0][0] <= now - MINUTE_SECONDS:
            self._asked.popleft()
        return self._rules.per_minute - sum(count for _, count in self._asked)

    def _stop(self) -> None:
        self.is_shedding = False
        self._above_since = None


__all__ = ["CHANCE", "JUDGED_AFTER_SECONDS", "LEAST_EXCESS", "Rebalance", "RebalanceRules"]
