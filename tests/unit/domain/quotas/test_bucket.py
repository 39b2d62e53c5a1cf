"""The bucket's one promise, whatever is asked when; and what it says of the wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.quotas import Bucket

RATES = st.floats(0.1, 10_000)
STEPS = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 400)), max_size=60)
"""Seconds since the one before, and what is asked for."""


@given(RATES, st.floats(0.1, 500), STEPS)
def test_no_interval_gets_more_than_rate_and_burst(
    rate: float, capacity: float, steps: list[tuple[float, int]]
) -> None:
    """Over every interval between two grants: rate * t + max(capacity, the largest cost)."""
    bucket, now = Bucket(rate, capacity, 0.0), 0.0
    granted: list[tuple[float, int]] = []
    for seconds, cost in steps:
        now += seconds
        if not bucket.wait_seconds(cost, now):
            bucket.charge(cost, now)
            granted.append((now, cost))

    bound = max([capacity, *(cost for _, cost in granted)])
    for first in range(len(granted)):
        total = 0
        for at, cost in granted[first:]:
            total += cost
            assert total <= rate * (at - granted[first][0]) + bound + 1e-6


@given(RATES, st.floats(0.1, 500), st.integers(1, 400), st.integers(1, 400))
def test_who_waits_as_long_as_told_is_let_in(rate: float, capacity: float, before: int, cost: int) -> None:
    """The wait is enough when nobody else is charged meanwhile."""
    bucket = Bucket(rate, capacity, 0.0)
    bucket.charge(before, 0.0)

    wait = bucket.wait_seconds(cost, 0.0)

    assert bucket.wait_seconds(cost, wait + 1e-6 * (1 + wait)) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("cost", "is_let_in"), [(9, True), (10, True), (11, True)])
def test_what_is_larger_than_the_bucket_passes_when_it_is_full(cost: int, is_let_in: bool) -> None:
    """Otherwise a large batch could never be sent at all."""
    bucket = Bucket(1.0, 10.0, 0.0)

    assert (bucket.wait_seconds(cost, 0.0) == 0) is is_let_in


def test_what_is_larger_than_the_bucket_waits_until_it_is_full() -> None:
    """One token is missing: one second."""
    bucket = Bucket(1.0, 10.0, 0.0)
    bucket.charge(1, 0.0)

    assert bucket.wait_seconds(40, 0.0) == 1.0


def test_depth_lets_into_debt_and_no_further() -> None:
    """A bucketful of it."""
    bucket = Bucket(1.0, 10.0, 0.0)
    bucket.charge(10, 0.0)

    assert [bucket.wait_seconds(cost, 0.0, depth=10.0) for cost in (9, 10)] == [0.0, 0.0]
    bucket.charge(1, 0.0)
    assert bucket.wait_seconds(10, 0.0, depth=10.0) == 1.0


def test_another_size_makes_no_tokens() -> None:
    """What there is stays, a debt as well."""
    bucket = Bucket(1.0, 10.0, 0.0)
    bucket.charge(15, 0.0)

    bucket.resize(100.0, 1_000.0, 0.0)

    assert bucket.level(0.0) == -5.0


def test_a_smaller_size_takes_what_is_above_it() -> None:
    """A share that has shrunk may not be overdrawn by what was saved before."""
    bucket = Bucket(10.0, 100.0, 0.0)

    bucket.resize(1.0, 10.0, 0.0)

    assert bucket.level(0.0) == 10.0


def test_time_that_goes_back_makes_no_tokens() -> None:
    """Callers read their clocks in one order and may call in another."""
    bucket = Bucket(1.0, 10.0, 5.0)
    bucket.charge(10, 5.0)

    assert bucket.level(3.0) == 0.0
    assert bucket.level(6.0) == 1.0
