"""Waits: full jitter, a cap, and a server's word as a lower bound."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st
from relayrouter.backoff import Backoff


class Ceiling(random.Random):
    def uniform(self, _a: float, b: float) -> float:
        return b


def test_delays_double_up_to_the_cap() -> None:
    """1, 2, 4 ... 30 s is the most that each wait may be."""
    backoff = Backoff(1.0, 30.0, Ceiling())

    assert [backoff.next_delay_seconds() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_five_thousand_failures_are_still_finite() -> None:
    """The power is computed below the cap (B05)."""
    backoff = Backoff(1.0, 30.0, random.Random(1))
    delays = [backoff.next_delay_seconds() for _ in range(5001)]

    assert all(math.isfinite(delay) and 0 <= delay <= 30 for delay in delays)


def test_first_attempts_of_a_thousand_clients_are_spread() -> None:
    """No tenth of the window has more than 15 % of them (B06)."""
    rng = random.Random(7)
    firsts = [Backoff(1.0, 30.0, random.Random(rng.random())).next_delay_seconds() for _ in range(1000)]
    tenths = [sum(1 for first in firsts if int(first * 10) == tenth) for tenth in range(10)]

    assert max(tenths) <= 150
    assert sum(tenths) == 1000


def test_a_reset_begins_anew() -> None:
    """`retry=` counts from the last stable connection."""
    backoff = Backoff(1.0, 30.0, Ceiling())
    backoff.next_delay_seconds()
    backoff.reset()

    assert backoff.attempt == 0
    assert backoff.next_delay_seconds() == 1


@given(st.floats(0.001, 600), st.integers(0, 40), st.integers(0, 2**32))
def test_a_servers_word_is_kept_and_stretched_by_a_quarter_at_most(bound: float, attempt: int, seed: int) -> None:
    """Many clients may have been given the same word (B04)."""
    backoff = Backoff(1.0, 30.0, random.Random(seed))
    backoff.attempt = attempt
    delay = backoff.next_delay_seconds(bound)

    assert bound <= delay <= bound * 1.25 + 1e-9
    assert backoff.attempt == attempt + 1
