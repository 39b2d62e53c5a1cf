"""The drain plan, for any number of connections and any settings (K01, K03)."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.drain_plan import RETURN_PACE_SECONDS, DrainSlot, plan_drain

SECONDS = st.floats(0, 600, allow_nan=False)


def plan(count: int, *, pace: float = 0.1, window: float = 15, left: float = 19, spread: float = 10) -> list[DrainSlot]:
    return plan_drain(
        count,
        pace_seconds=pace,
        window_seconds=window,
        time_left_seconds=left,
        return_spread_seconds=spread,
    )


@given(
    count=st.one_of(st.integers(0, 200), st.just(50_000)),
    pace=st.floats(0, 10),
    window=SECONDS,
    left=st.floats(-60, 600),
    spread=SECONDS,
)
def test_any_plan_keeps_the_rules(count: int, pace: float, window: float, left: float, spread: float) -> None:
    slots = plan(count, pace=pace, window=window, left=left, spread=spread)

    closes = [slot.close_after_seconds for slot in slots]
    returns = [slot.return_after_ms for slot in slots]
    assert len(slots) == count
    assert closes == sorted(closes)
    assert returns == sorted(returns)
    assert all(0 <= close <= max(0.0, min(window, left)) for close in closes)
    assert all(returned >= 1 for returned in returns)
    # Nobody is asked back before it is closed, nor much later than it takes to spread the returns.
    assert all(slot.return_after_ms >= 1000 * slot.close_after_seconds for slot in slots)
    assert all(returned <= 1 + 1000 * max(window, spread) for returned in returns)
    if count > 1:
        assert closes[1] - closes[0] <= pace + 1e-9


@given(count=st.integers(2, 2_000), left=st.floats(-5, 30))
def test_the_slots_are_not_all_equal_and_no_tenth_of_the_spread_holds_too_many(count: int, left: float) -> None:
    returns = [slot.return_after_ms for slot in plan(count, left=left)]

    span = max(returns)
    most = max(sum(span * k / 10 < r <= span * (k + 1) / 10 for r in returns) for k in range(10))
    assert len(set(returns)) > 1
    assert most <= count / 10 + 1


def test_with_time_enough_closes_follow_the_pace_and_clients_return_when_they_are_closed() -> None:
    slots = plan(40)

    assert [round(slot.close_after_seconds, 6) for slot in slots] == [round(0.1 * place, 6) for place in range(40)]
    assert all(slot.return_after_ms - 1000 * slot.close_after_seconds <= 101 for slot in slots)


def test_the_deadline_wins_and_the_returns_stay_spread_beyond_it() -> None:
    slots = plan(1_000, left=2, spread=10)

    assert max(slot.close_after_seconds for slot in slots) < 2
    assert max(slot.return_after_ms for slot in slots) == 10_001


def test_without_any_time_all_are_closed_at_once() -> None:
    slots = plan(100, left=-1)

    assert {slot.close_after_seconds for slot in slots} == {0.0}
    assert len({slot.return_after_ms for slot in slots}) == 100


def test_without_a_pace_the_returns_are_spread_all_the_same() -> None:
    slots = plan(300, pace=0)

    assert {slot.close_after_seconds for slot in slots} == {0.0}
    assert slots[-1].return_after_ms == 1 + 1000 * 300 * RETURN_PACE_SECONDS


def test_fifty_thousand_connections_fit_into_the_window() -> None:
    slots = plan(50_000)

    assert slots[-1].close_after_seconds < 15
    assert slots[-1].return_after_ms == 15_001


def test_nobody_connected_needs_no_plan() -> None:
    assert plan(0) == []
