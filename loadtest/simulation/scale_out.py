"""A cluster that grew by a quarter: how long until it is even, by the rule that its gateways run."""

import random
from collections import deque
from dataclasses import dataclass
from math import sqrt
from typing import Final

from gateway.domain.sessions.rebalance import CHANCE, LEAST_EXCESS, Rebalance
from loadtest.simulation.policy import Policy

STEP_SECONDS: Final = 5.0
SAMPLED: Final = 32
"""As many others as a gateway looks at (core/rebalancer.py)."""
MAX_STEPS: Final = 7_200


@dataclass(frozen=True, slots=True)
class Evening:
    seconds: float
    """Until no gateway has more above the mean than the rule allows; infinite: it never was."""
    moves: int
    most_asked: int
    """By one gateway in any minute."""


def scale_out(clients: int, gateways: int, policy: Policy, rng: random.Random) -> Evening:
    """The new ones are empty, and the balancer sends whoever moves to one by chance: also back."""
    fresh = max(1, gateways // 4)
    here = [clients // gateways] * gateways + [0] * fresh
    mean = sum(here) / len(here)
    each = [Rebalance(policy.rebalance) for _ in range(gateways)]
    asked: list[deque[int]] = [deque([0] * 12, 12) for _ in range(gateways)]
    moves = most_asked = 0
    for step in range(MAX_STEPS):
        if max(here) - mean <= max(mean * policy.rebalance.within, LEAST_EXCESS, CHANCE * sqrt(mean)) + 1:
            return Evening(step * STEP_SECONDS, moves, most_asked)
        leaving = 0
        for index, rebalance in enumerate(each):
            others = [here[other] for other in rng.sample(range(len(here)), min(SAMPLED, len(here))) if other != index]
            is_sample = len(here) > SAMPLED
            count = rebalance.step(step * STEP_SECONDS, here[index], others, is_sample=is_sample)
            rebalance.asked(step * STEP_SECONDS, count)
            asked[index].append(count)
            most_asked = max(most_asked, sum(asked[index]))
            here[index] -= count
            leaving += count
        moves += leaving
        for _ in range(leaving):
            here[rng.randrange(len(here))] += 1
    return Evening(float("inf"), moves, most_asked)


__all__ = ["Evening", "scale_out"]
