"""Shares of a rate: they add up, small demands are met, nobody is starved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.quotas import FLOOR, share_of

DEMANDS = st.lists(st.floats(0, 5_000), min_size=1, max_size=40)


def shares(rate: float, demands: list[float], silent: int = 0) -> list[float]:
    """Of every gateway that told something."""
    return [share_of(rate, own, demands[:i] + demands[i + 1 :], silent) for i, own in enumerate(demands)]


@given(st.floats(1, 5_000), DEMANDS)
def test_shares_add_up_to_the_rate(rate: float, demands: list[float]) -> None:
    """With the same figures everywhere, whatever they are."""
    assert sum(shares(rate, demands)) == pytest.approx(rate)


@given(st.floats(1, 5_000), DEMANDS, st.integers(0, 40))
def test_nobody_has_less_than_the_floor(rate: float, demands: list[float], silent: int) -> None:
    """A gateway where traffic begins grants something at once."""
    assert min(shares(rate, demands, silent)) >= rate * FLOOR / (len(demands) + silent) * 0.999


@given(st.floats(1, 5_000), DEMANDS)
def test_what_fits_is_met_whole(rate: float, demands: list[float]) -> None:
    """When all together ask for less than there is to give."""
    if sum(demands) <= rate * (1 - FLOOR):
        assert all(share >= demand for share, demand in zip(shares(rate, demands), demands, strict=True))


def test_small_demands_are_met_before_large_ones() -> None:
    """Max-min: who asks for less than an even part gets it all, the rest is split among the others."""
    small, *large = shares(100, [5, 1_000, 1_000])

    assert small == pytest.approx(5 + 100 * FLOOR / 3)
    assert large == pytest.approx([(100 * (1 - FLOOR) - 5) / 2 + 100 * FLOOR / 3] * 2)


def test_alone_it_has_all() -> None:
    """Nothing is kept for gateways that do not exist."""
    assert share_of(100, 0, []) == pytest.approx(100)


def test_the_only_one_in_use_has_all_but_the_floor_of_the_others() -> None:
    """A tenant of one gateway among many gets 95 % of its rate at least."""
    assert share_of(100, 100, [], silent=99) >= 95


def test_idle_gateways_have_even_parts() -> None:
    """Wherever traffic begins."""
    assert shares(100, [0, 0, 0, 0]) == pytest.approx([25] * 4)
