"""Waits double to a bound, are spread, and heed what the server asks for."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.pods.backoff import Backoff

CHANCES = st.floats(0, 1)


@given(st.lists(CHANCES, min_size=1))
def test_every_wait_is_between_half_of_its_bound_and_the_bound(chances: list[float]) -> None:
    backoff = Backoff(1.0, 60.0)

    waits = [backoff.failed(chance) for chance in chances]

    bounds = [min(60.0, 2.0 ** min(turn, 10)) for turn in range(len(waits))]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))


@given(CHANCES, st.floats(0, 1_000))
def test_a_server_that_asks_for_more_gets_it_up_to_the_most(chance: float, asked: float) -> None:
    wait = Backoff(1.0, 60.0).failed(chance, asked)

    assert min(asked, 60.0) <= wait <= max(1.0, min(asked, 60.0))


def test_more_failures_than_a_float_can_double_are_waits_like_the_last() -> None:
    backoff = Backoff(1.0, 60.0)

    waits = [backoff.failed(1.0) for _ in range(1_200)]

    assert 60.0 == waits[-1]


def test_success_begins_anew() -> None:
    backoff = Backoff(1.0, 60.0)
    for _ in range(5):
        backoff.failed(1.0)
    backoff.worked()

    assert 1.0 == backoff.failed(1.0)


def test_many_do_not_ask_in_step() -> None:
    waits = {Backoff(1.0, 60.0).failed(chance / 10) for chance in range(11)}

    assert 11 == len(waits)
