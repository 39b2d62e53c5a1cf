"""Shedding after a scale-out, for any counts and settings (C11)."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.rebalance import (
    CHANCE,
    FUTILE_REST_SECONDS,
    LEAST_EXCESS,
    LEAST_JUDGED,
    STEPS_A_MINUTE,
    Rebalance,
    RebalanceRules,
)

RULES = RebalanceRules(within=0.15, per_minute=600, patience_seconds=30)
AT_ONCE = RebalanceRules(within=0.15, per_minute=10**6, patience_seconds=0)
STEP_SECONDS = 5.0
COUNTS = st.lists(st.integers(0, 5_000), min_size=2, max_size=8)


def test_alone_nobody_is_asked() -> None:
    assert 0 == Rebalance(AT_ONCE).step(0, 50_000, [])


def test_begins_above_the_border_and_not_at_it() -> None:
    assert 0 == Rebalance(AT_ONCE).step(0, 1_150, [850])
    assert 76 == Rebalance(AT_ONCE).step(0, 1_151, [849])


def test_few_connections_are_no_imbalance() -> None:
    assert 0 == Rebalance(AT_ONCE).step(0, 19, [1])
    assert 0 < Rebalance(AT_ONCE).step(0, 20, [0])


def test_what_chance_may_do_is_no_imbalance() -> None:
    """Of 100 a balancer by chance gives 30 more, three standard deviations, to one in a thousand gateways."""
    rules = RebalanceRules(0.01, 600, 0)

    assert 0 == Rebalance(rules).step(0, 129, [71])
    assert 0 < Rebalance(rules).step(0, 130, [70])


def test_one_odd_sample_of_many_gateways_is_no_imbalance() -> None:
    rebalance = Rebalance(AT_ONCE)

    assert 0 == rebalance.step(0, 1_000, [1_000], is_sample=True)
    assert 0 == rebalance.step(5, 1_000, [0], is_sample=True)
    assert 0 == rebalance.step(10, 1_000, [1_000], is_sample=True)
    for number in range(20):
        count = rebalance.step(15 + 5 * number, 1_000, [0], is_sample=True)
    assert count > 0


def test_must_hold_for_its_patience_without_a_break() -> None:
    rebalance = Rebalance(RULES)

    assert 0 == rebalance.step(0, 1_000, [0])
    assert 0 == rebalance.step(29, 1_000, [0])
    assert 0 == rebalance.step(29.5, 1_000, [1_000])
    assert 0 == rebalance.step(30, 1_000, [0])
    assert 0 == rebalance.step(59.9, 1_000, [0])
    assert 0 < rebalance.step(60, 1_000, [0])


def test_goes_on_below_the_border_until_it_is_well_within() -> None:
    rebalance = Rebalance(AT_ONCE)
    rebalance.step(0, 200, [0])

    assert 6 == rebalance.step(5, 114, [86])
    assert 0 == rebalance.step(10, 108, [92])
    assert not rebalance.is_shedding
    assert 0 == rebalance.step(15, 114, [86])


def test_those_who_came_back_are_asked_again_also_when_few_are_left() -> None:
    """It had ended when the last one was asked, and fewer than would begin it anew stayed too many for ever."""
    rebalance = Rebalance(AT_ONCE)

    asked = [rebalance.step(0, 31, [0]), rebalance.step(5, 31, [0], leaving=14), rebalance.step(10, 25, [6])]

    assert asked == [14, 0, 8]


def test_who_was_asked_is_not_counted_again_before_it_left() -> None:
    rebalance = Rebalance(AT_ONCE)

    count = rebalance.step(0, 200, [0])

    assert 92 == count
    assert 0 == rebalance.step(5, 200, [0], leaving=count)


def test_most_came_back_so_it_rests() -> None:
    rebalance = Rebalance(AT_ONCE)
    rebalance.step(0, 1_000, [0])

    assert not rebalance.judge(10, gone=0, back=LEAST_JUDGED - 1)
    assert rebalance.judge(15, gone=0, back=1)
    assert 0 == rebalance.step(15 + FUTILE_REST_SECONDS - 0.1, 1_000, [0])
    assert 0 < rebalance.step(15 + FUTILE_REST_SECONDS, 1_000, [0])


def test_half_of_them_back_by_chance_is_no_reason_to_rest() -> None:
    """A balancer between two gateways that chooses by chance sends half of them back."""
    rebalance = Rebalance(AT_ONCE)

    assert not rebalance.judge(0, gone=LEAST_JUDGED, back=LEAST_JUDGED)
    assert 0 < rebalance.step(1, 1_000, [0])


@given(COUNTS, st.integers(1, 2_000), st.integers(0, 60))
def test_never_above_the_budget_of_any_minute_and_never_past_the_border(
    counts: list[int], per_minute: int, jitter: int
) -> None:
    """Failure catalogue K11."""
    rebalance = Rebalance(RebalanceRules(0.15, per_minute, 0))
    own, *others = counts
    asked: list[tuple[float, int]] = []
    for number in range(60):
        now = number * STEP_SECONDS + (jitter * number % 7) / 10
        count = rebalance.step(now, own, others)
        assert 0 <= count <= per_minute // STEPS_A_MINUTE + 1
        if count:
            assert own - count >= sum(counts) / len(counts) * 1.075 - 1
        rebalance.asked(now, count)
        own -= count
        others[number % len(others)] += count
        asked.append((now, count))
    for at, _ in asked:
        assert sum(count for then, count in asked if at <= then < at + 60) <= per_minute


@given(COUNTS)
def test_a_cluster_becomes_even_and_stays_so(counts: list[int]) -> None:
    """All gateways judge at the same time by what they saw before; who leaves goes to the emptiest one."""
    here = list(counts)
    each = [Rebalance(AT_ONCE) for _ in here]
    for number in range(40):
        seen = list(here)
        for index, rebalance in enumerate(each):
            count = rebalance.step(number * STEP_SECONDS, seen[index], seen[:index] + seen[index + 1 :])
            here[index] -= count
            here[here.index(min(here))] += count
    mean = sum(here) / len(here)
    assert max(here) <= max(mean * 1.15, mean + LEAST_EXCESS, mean + CHANCE * mean**0.5) + 1
    assert sum(here) == sum(counts)
