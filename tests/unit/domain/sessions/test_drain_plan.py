"""The drain plan, for any number of clients, wherever they are, and any settings (K01, K03, C7)."""

from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.drain_plan import (
    HEADSUP_SECONDS,
    DrainSlot,
    DrainTimes,
    Returns,
    Standing,
    early_slot,
    plan_drain,
)

IDLE, BETWEEN, IN_RUN = Standing
TIMES = st.builds(
    DrainTimes,
    pace_seconds=st.floats(0, 10),
    window_seconds=st.floats(0, 600),
    time_left_seconds=st.floats(-60, 600),
    overlap_seconds=st.floats(0, 10),
    returns_per_second=st.floats(1, 1_000),
)
CLIENTS = st.lists(st.sampled_from(Standing), max_size=300)


def times(
    *, pace: float = 0.1, window: float = 15, left: float = 19, overlap: float = 2, rate: float = 100
) -> DrainTimes:
    return DrainTimes(pace, window, left, overlap, rate)


def plan(standings: list[Standing], the: DrainTimes) -> list[DrainSlot]:
    return plan_drain(standings, the, Returns(the.returns_per_second))


def most_in_a_second(moments: list[float]) -> int:
    ordered = sorted(moments)
    return max((bisect_left(ordered, at + 1) - index for index, at in enumerate(ordered)), default=0)


@given(CLIENTS, TIMES)
def test_any_plan_keeps_the_rules(standings: list[Standing], the: DrainTimes) -> None:
    """Everybody is told before it is closed, all are closed in time, nobody comes back faster than the others admit."""
    slots = plan(standings, the)

    assert len(standings) == len(slots)
    for slot in slots:
        assert 0 <= slot.told_after_seconds <= slot.close_after_seconds <= the.close_span_seconds
        assert 1 <= slot.return_after_ms
    assert most_in_a_second([slot.return_at_seconds for slot in slots]) <= the.returns_per_second + 2


@given(CLIENTS, TIMES)
def test_idle_ones_leave_first_and_those_in_a_run_last(standings: list[Standing], the: DrainTimes) -> None:
    slots = sorted(zip(standings, plan(standings, the), strict=True), key=lambda pair: pair[0])

    closes = [slot.close_after_seconds for _, slot in slots]
    assert closes == sorted(closes)
    assert all(slot.told_after_seconds == 0 for standing, slot in slots if standing is not IN_RUN)


@given(CLIENTS, TIMES, st.lists(st.floats(0, 600), max_size=60))
def test_those_who_leave_early_take_nobodys_place(
    standings: list[Standing], the: DrainTimes, moments: list[float]
) -> None:
    """Returns of the plan and of runs that ended together are within the others' budget in every second."""
    returns = Returns(the.returns_per_second)
    slots = plan_drain(standings, the, returns)
    early = [early_slot(at, the, returns) for at in sorted(moments)]

    assert most_in_a_second([slot.return_at_seconds for slot in slots + early]) <= the.returns_per_second + 2
    assert all(slot.told_after_seconds <= slot.close_after_seconds for slot in early)


def test_fifty_thousand_are_planned_within_the_budget() -> None:
    the = times(window=600, left=300, rate=100)

    slots = plan([IDLE] * 30_000 + [IN_RUN] * 20_000, the)

    returns = [slot.return_at_seconds for slot in slots]
    assert most_in_a_second(returns) <= 101
    assert 500 <= max(returns) <= 501
    assert max(slot.close_after_seconds for slot in slots) <= 300


def test_with_time_enough_a_client_returns_before_its_socket_is_closed() -> None:
    """Make before break: the pace is kept, and the old socket goes on for a while."""
    slots = plan([IDLE] * 40, times())

    assert [round(0.1 * (turn + 1), 6) for turn in range(40)] == [round(slot.return_at_seconds, 3) for slot in slots]
    assert all(2 == round(slot.close_after_seconds - slot.return_at_seconds, 2) for slot in slots)


def test_the_deadline_wins_and_the_returns_stay_spread_beyond_it() -> None:
    slots = plan([IDLE] * 1_000, times(left=2))

    assert max(slot.close_after_seconds for slot in slots) <= 2
    assert 10 == round(max(slot.return_at_seconds for slot in slots))


def test_without_any_time_all_are_closed_at_once() -> None:
    slots = plan([IDLE, IN_RUN] * 50, times(left=-1))

    assert {0.0} == {slot.close_after_seconds for slot in slots}
    assert {0.0} == {slot.told_after_seconds for slot in slots}
    assert 100 == len({slot.return_after_ms for slot in slots})


def test_client_in_a_run_is_told_shortly_before_its_turn() -> None:
    """Its run may end before, and then it leaves right after the end."""
    slots = plan([IN_RUN] * 100, times())

    assert all(slot.told_after_seconds > slot.return_at_seconds - HEADSUP_SECONDS - 0.01 for slot in slots)


def test_run_that_ends_early_frees_its_client_at_once() -> None:
    the = times()
    returns = Returns(the.returns_per_second)
    plan_drain([IN_RUN] * 20, the, returns)

    slot = early_slot(1.005, the, returns)

    assert 1.005 == slot.told_after_seconds
    assert slot.return_after_ms <= 30
    assert round(slot.close_after_seconds, 1) == 3.0


@given(st.lists(st.floats(0, 50), min_size=1, max_size=200), st.floats(1, 50))
def test_calendar_gives_the_first_free_moment(moments: list[float], rate: float) -> None:
    returns = Returns(rate)

    given_at = [returns.take(at) for at in moments]

    assert all(got >= at for at, got in zip(moments, given_at, strict=True))
    assert all(
        bisect_right(sorted(given_at), at + 1) - bisect_left(sorted(given_at), at) <= rate + 2 for at in given_at
    )
