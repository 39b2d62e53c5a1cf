"""The bucket: never more than `per_second` x t + `burst` in any window, and told times that nobody shares."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.admission.bucket import HORIZON_SECONDS, SLACK, Bucket
from gateway.domain.admission.by_second import KEPT_SECONDS, BySecond
from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.rate import FULL, SECOND_NS, Rate, ns

RATES = st.builds(
    Rate,
    st.floats(0.01, 5_000, allow_nan=False),
    st.integers(1, 50),
)
TIMES = st.lists(st.floats(0, 60, allow_nan=False), min_size=1, max_size=300).map(sorted)


def admitted(rate: Rate, times: list[float]) -> list[float]:
    bucket = Bucket(rate)
    return [now for now in times if bucket.take(ns(now))]


@given(RATES, TIMES)
def test_no_window_holds_more_than_the_rule_allows(rate: Rate, times: list[float]) -> None:
    """Exactly, in fractions: not one too many for a rounding, whatever the window."""
    taken = admitted(rate, times)

    for first, begin in enumerate(taken):
        for count, end in enumerate(taken[first:], 1):
            assert count <= Fraction(rate.per_second) * (Fraction(end) - Fraction(begin)) + rate.burst


@given(RATES, TIMES)
def test_who_asks_is_refused_only_when_the_rule_demands_it(rate: Rate, times: list[float]) -> None:
    """The bucket is not stricter than its rule, up to the nanosecond by which each token is rounded."""
    bucket, taken = Bucket(rate), list[float]()
    for now in times:
        if bucket.take(ns(now)):
            taken.append(now)
            continue
        slack = (len(taken) + 1) * 3e-9 * rate.per_second + 1e-6
        assert any(
            count + 1 > rate.per_second * (now - begin) + rate.burst - slack
            for count, begin in zip(range(len(taken), 0, -1), taken, strict=True)
        )


@pytest.mark.parametrize("burst", [1, 2, 7])
def test_a_full_bucket_holds_its_burst_and_not_one_more(burst: int) -> None:
    bucket = Bucket(Rate(10, burst))

    assert [bucket.take(0) for _ in range(burst + 1)] == [True] * burst + [False]


def test_one_token_comes_back_after_its_time_and_not_before() -> None:
    bucket = Bucket(Rate(10, 1))
    bucket.take(0)

    assert not bucket.take(ns(0.1) - 1)
    assert bucket.take(ns(0.1) + 1)


def test_tenths_of_a_token_add_up() -> None:
    rate, state = Rate(1, 1), FULL
    for _ in range(9):
        after = rate.take(state, 0, 0.1)
        assert after is not None
        state = after

    assert rate.take(state, 0) is None
    assert rate.tokens(state, 0) == pytest.approx(0.1, abs=1e-6)


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_a_rate_that_means_nothing_is_refused(per_second: float, burst: int) -> None:
    with pytest.raises(ValueError, match="rate"):
        Rate(per_second, burst)


# ---- told times --------------------------------------------------------------------------------------------------


def empty(per_second: float, burst: int = 1) -> Bucket:
    bucket = Bucket(Rate(per_second, burst))
    while bucket.take(0):
        pass
    return bucket


@given(st.floats(1, 2_000), st.integers(1, 400))
def test_a_storms_refused_are_told_times_one_token_apart(per_second: float, count: int) -> None:
    """All refused in the same moment: no two told times are nearer than a token, none waits longer than its turn."""
    bucket = empty(per_second)
    soonest = [bucket.book(0).soonest_seconds for _ in range(count)]
    within = [wait for number, wait in enumerate(soonest, 1) if (number + 1) / per_second < HORIZON_SECONDS]

    assert all(later - earlier >= 1 / per_second for earlier, later in pairwise(within))
    assert within == pytest.approx([number / per_second for number in range(1, len(within) + 1)], abs=1e-4)


def test_who_comes_at_the_told_time_is_admitted() -> None:
    """Those that were refused together return one by one, and each finds its token."""
    bucket = empty(50, burst=5)
    told = [bucket.book(0).soonest_seconds for _ in range(200)]

    assert all(bucket.take(ns(seconds) + 1) for seconds in told)


def test_a_told_time_is_late_by_a_quarter_at_most() -> None:
    turn = empty(1).book(0)

    assert turn.latest_seconds == turn.soonest_seconds * (1 + SLACK)


def test_beyond_the_horizon_nobody_is_promised_a_place() -> None:
    """An endless queue is spread over the second half of the horizon, and does not grow."""
    bucket = empty(1)
    turns = [bucket.book(0) for _ in range(100)]

    assert turns[-1] == (HORIZON_SECONDS / 2, HORIZON_SECONDS)
    assert bucket.promised_seconds(0) <= HORIZON_SECONDS + 1


def test_a_bucket_that_filled_up_waits_for_nobody_who_was_told() -> None:
    """Those who were told did not come: the next refused one does not stand behind them."""
    bucket = empty(10, burst=2)
    for _ in range(100):
        bucket.book(0)
    later = ns(1)
    while bucket.take(later):
        pass

    assert bucket.book(later).soonest_seconds == pytest.approx(0.1, abs=1e-6)


def test_a_question_takes_no_place_and_is_spread_over_the_told_times() -> None:
    bucket = empty(10)
    for _ in range(50):
        bucket.book(0)
    guesses = [bucket.guess(0) for _ in range(3)]

    assert guesses == [guesses[0]] * 3
    assert guesses[0] == pytest.approx((0.1, 5.1), abs=1e-3)
    assert bucket.book(0).soonest_seconds == pytest.approx(5.1, abs=1e-3)


# ---- counted by second -------------------------------------------------------------------------------------------


def test_what_was_admitted_is_kept_by_second() -> None:
    seconds = BySecond()
    for at, kind in ((0.1, Kind.NEW), (0.9, Kind.RESUME), (0.9, Kind.RESUME), (2.0, Kind.READ)):
        seconds.count(kind, ns(at))

    assert list(seconds.rows(ns(2))) == [
        (0, {"new": 1, "resume": 2, "read": 0}),
        (2, {"new": 0, "resume": 0, "read": 1}),
    ]


def test_old_seconds_are_forgotten() -> None:
    seconds = BySecond()
    for second in range(2 * KEPT_SECONDS):
        seconds.count(Kind.NEW, second * SECOND_NS)

    assert len(list(seconds.rows((2 * KEPT_SECONDS - 1) * SECOND_NS))) == KEPT_SECONDS
    assert not list(seconds.rows(4 * KEPT_SECONDS * SECOND_NS))
