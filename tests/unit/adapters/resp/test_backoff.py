"""Reconnect delays: full jitter below a bound that doubles up to the greatest."""

import random

from gateway.adapters.resp.backoff import Backoff


class Highest(random.Random):
    """Always the upper end."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_bound_doubles_up_to_the_greatest_and_starts_again_after_reset() -> None:
    backoff = Backoff(50, 300, Highest())

    delays = [backoff.delay_seconds() for _ in range(5)]
    backoff.reset()

    assert [0.05, 0.1, 0.2, 0.3, 0.3] == delays
    assert backoff.delay_seconds() == 0.05


def test_delays_are_spread_over_the_whole_range() -> None:
    delays = [Backoff(1000, 1000, random.Random(seed)).delay_seconds() for seed in range(200)]

    assert min(delays) < 0.05
    assert max(delays) > 0.95
