"""Waits between attempts: full jitter, finite for ever, never below what a server said."""

import random

from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.settings import BackoffSettings


def delays(seed: int, count: int) -> list[float]:
    backoff = Backoff(BackoffSettings(), random.Random(seed))
    return [backoff.next_delay_seconds() for _ in range(count)]


def test_five_thousand_failures_give_finite_delays_within_the_cap() -> None:
    assert all(0 <= delay <= 30 for delay in delays(1, 5_000))


def test_the_ceiling_doubles_to_the_cap() -> None:
    many = [delays(seed, 8) for seed in range(300)]

    for attempt, ceiling in enumerate([1, 2, 4, 8, 16, 30, 30, 30]):
        column = [row[attempt] for row in many]
        assert max(column) <= ceiling
        assert max(column) > 0.9 * ceiling


def test_a_thousand_first_attempts_are_spread() -> None:
    first = [delays(seed, 1)[0] for seed in range(1_000)]
    slots = [sum(slot / 10 <= delay < (slot + 1) / 10 for delay in first) for slot in range(10)]

    assert max(slots) <= 150


def test_a_servers_word_is_a_lower_bound_with_jitter_on_top() -> None:
    waits = {Backoff(BackoffSettings(), random.Random(seed)).next_delay_seconds(5) for seed in range(50)}

    assert all(5 <= wait <= 6 for wait in waits)
    assert len(waits) == 50


def test_success_starts_anew() -> None:
    backoff = Backoff(BackoffSettings(), random.Random(3))
    for _ in range(10):
        backoff.next_delay_seconds()
    backoff.reset()

    assert backoff.next_delay_seconds() <= 1
