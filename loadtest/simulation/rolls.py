"""A rolling upgrade: gateways drain in waves, by the plan that they run, and the others take their clients."""

import random
from dataclasses import dataclass
from math import ceil
from typing import Final

from gateway.domain.sessions.drain_plan import DrainSlot, Returns, Standing, plan_drain
from loadtest.simulation.cohorts import CohortStorm
from loadtest.simulation.figures import Figures
from loadtest.simulation.policy import SLOTS_A_SECOND, Policy

UNAVAILABLE_SHARE: Final = 0.25
"""Kubernetes' default: a quarter of the pods at once, rounded down, but at least one."""
IN_RUN_SHARE: Final = 0.2
START_SECONDS: Final = 10.0
"""Until the successor of a gateway serves; then the next ones drain."""


@dataclass(frozen=True, slots=True)
class Roll:
    waves: int
    seconds: float
    """Until the last client of the last wave is live again."""
    most_returns: float
    """Asked back in a second for each gateway that takes them."""
    most_admitted: int
    """By one gateway in one second."""
    refused: int
    fullest: int
    """Connections of the fullest gateway at the end, without any rebalance."""


def roll(clients: int, gateways: int, policy: Policy, rng: random.Random) -> Roll:
    """All gateways, one wave after the other. The balancer spreads those that return over all that serve."""
    at_once = max(1, int(gateways * UNAVAILABLE_SHARE))
    old, old_load, fresh, fresh_load = gateways, clients / gateways, 0, 0.0
    waves, began_at, ended_at, refused, most_admitted, most_returns = 0, 0.0, 0.0, 0, 0, 0.0
    while old:
        leaving = min(at_once, old)
        takers = old - leaving + fresh or leaving  # the last ones are taken by their successors
        figures, returns = _wave(round(old_load), leaving, takers, policy, rng)
        moved = leaving * old_load
        old -= leaving
        old_load += moved / takers if old else 0.0
        fresh_load = (fresh * fresh_load + (moved if not old else moved * fresh / takers)) / (fresh + leaving)
        fresh += leaving
        waves += 1
        ended_at = began_at + figures.all_live_seconds
        began_at += policy.drain_seconds + START_SECONDS
        refused += figures.attempts.total() - figures.live
        most_admitted = max(most_admitted, figures.most_admitted)
        most_returns = max(most_returns, returns)
    return Roll(waves, ended_at, most_returns, most_admitted, refused, ceil(max(old_load, fresh_load)))


def _wave(clients: int, leaving: int, takers: int, policy: Policy, rng: random.Random) -> tuple[Figures, float]:
    """What the takers went through, and the most returns that one of them was asked to take in a second."""
    storm = CohortStorm(takers, policy, rng)
    for slot in _slots(clients, policy):
        storm.schedule(int((policy.settle_seconds + slot.return_at_seconds) * SLOTS_A_SECOND), leaving)
    figures = storm.run()
    asked = max(_per_second(clients, policy), default=0)
    return figures, asked * leaving / takers


def _slots(clients: int, policy: Policy) -> list[DrainSlot]:
    in_run = int(clients * IN_RUN_SHARE)
    standings = [Standing.IDLE] * (clients - in_run) + [Standing.IN_RUN] * in_run
    return plan_drain(standings, policy.drain_times, Returns(policy.drain_times.returns_per_second))


def _per_second(clients: int, policy: Policy) -> list[int]:
    counts: dict[int, int] = {}
    for slot in _slots(clients, policy):
        second = int(slot.return_at_seconds)
        counts[second] = counts.get(second, 0) + 1
    return list(counts.values())


__all__ = ["Roll", "roll"]
