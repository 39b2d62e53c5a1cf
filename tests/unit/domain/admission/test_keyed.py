"""Limits of a key: exact at the limit, apart from other keys, and bounded however many keys come."""

import pytest

from gateway.domain.admission.keyed import FULL_SECONDS, KeyedRates, KeyLimits, Over
from gateway.domain.admission.rate import Rate, ns


def test_keys_do_not_share_a_bucket() -> None:
    rates = KeyedRates[str](Rate(1, 2))

    assert [rates.take("a", 0) for _ in range(3)] == [True, True, False]
    assert rates.take("b", 0)
    assert rates.wait_seconds("a", 0) == pytest.approx(1, abs=1e-6)
    assert rates.take("a", ns(1.001))


@pytest.mark.parametrize(("count", "kept"), [(9, 9), (10, 10), (11, 10), (100_000, 10)])
def test_a_flood_of_keys_costs_bounded_memory(count: int, kept: int) -> None:
    rates = KeyedRates[int](Rate(1, 1), max_keys=10)
    for key in range(count):
        rates.take(key, 0)

    assert len(rates) == kept


def test_who_keeps_coming_is_not_pushed_out_by_a_flood() -> None:
    """Each attempt, also a refused one, makes it the newest."""
    rates = KeyedRates[int](Rate(0.001, 1), max_keys=10)
    rates.take(-1, 0)
    refused = []
    for key in range(1_000):
        rates.take(key, 0)
        refused.append(not rates.take(-1, 0))

    assert all(refused)


def test_without_a_rate_nothing_is_kept() -> None:
    rates = KeyedRates[str](None)

    assert rates.take("a", 0)
    assert rates.wait_seconds("a", 0) == 0
    assert not len(rates)


def test_connections_at_once_are_exact_and_come_back() -> None:
    limits = KeyLimits[str](KeyedRates(None), most=2)
    for _ in range(2):
        assert limits.refuses("a", 0, 1.0, has_place=True) is None
        limits.take("a", 0, 1.0, has_place=True)

    assert limits.refuses("a", 0, 1.0, has_place=True) == Over("connections", FULL_SECONDS)
    assert limits.refuses("a", 0, 1.0, has_place=False) is None
    assert limits.refuses("b", 0, 1.0, has_place=True) is None
    limits.leave("a")
    assert limits.refuses("a", 0, 1.0, has_place=True) is None


def test_nothing_is_left_of_a_key_that_has_gone() -> None:
    limits = KeyLimits[str](KeyedRates(None), most=5)
    for key in "aab":
        limits.take(key, 0, 1.0, has_place=True)
    for key in "aab":
        limits.leave(key)

    assert len(limits) == 0


def test_a_limit_that_is_off_counts_nothing() -> None:
    limits = KeyLimits[str](KeyedRates(None), most=0)
    limits.take("a", 0, 1.0, has_place=True)
    limits.leave("a")

    assert not limits.is_set
    assert len(limits) == 0
