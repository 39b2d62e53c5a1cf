"""Fewest runs go first; a cost is what Kubernetes reads; writes are few."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.pods.deletion_cost import LEAVING_COST, MAX_CONNECTIONS, CostPlan, Load, cost_of, is_notable

COUNTS = st.integers(0, 2**40)
LOADS = st.builds(Load, st.integers(0, 50), st.integers(0, 5_000), st.booleans())
KUBERNETES_READS = range(-(2**31), 2**31)


@given(COUNTS, COUNTS, st.booleans())
def test_every_cost_is_one_that_kubernetes_reads(runs: int, connections: int, is_leaving: bool) -> None:
    assert cost_of(Load(runs, connections, is_leaving)) in KUBERNETES_READS


@given(st.integers(0, 19_999), COUNTS, COUNTS)
def test_one_run_more_weighs_more_than_all_connections(runs: int, here: int, there: int) -> None:
    assert cost_of(Load(runs, here)) < cost_of(Load(runs + 1, there))


@given(COUNTS, st.integers(0, MAX_CONNECTIONS - 1))
def test_among_equal_runs_more_connections_cost_more(runs: int, connections: int) -> None:
    assert cost_of(Load(runs, connections)) < cost_of(Load(runs, connections + 1))


@given(LOADS)
def test_one_that_leaves_goes_before_all_that_serve(load: Load) -> None:
    serving = Load(load.runs, load.connections)

    assert LEAVING_COST == cost_of(Load(load.runs, load.connections, is_leaving=True)) < cost_of(serving)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Load(0, 0), Load(0, 1), True),
        (Load(0, 1), Load(0, 0), True),
        (Load(0, 5), Load(0, 14), False),
        (Load(0, 5), Load(0, 15), True),
        (Load(0, 1_000), Load(0, 1_249), False),
        (Load(0, 1_000), Load(0, 1_250), True),
        (Load(1, 5), Load(2, 5), True),
        (Load(40, 5), Load(49, 5), False),
        (Load(40, 5), Load(50, 5), True),
        (Load(9, 9), Load(9, 9, is_leaving=True), True),
        (Load(9, 9, is_leaving=True), Load(0, 0, is_leaving=True), False),
    ],
)
def test_what_is_notable(before: Load, now: Load, expected: bool) -> None:
    assert expected == is_notable(before, now)


@given(LOADS, LOADS)
def test_notable_is_so_both_ways_and_never_of_the_same(one: Load, other: Load) -> None:
    assert is_notable(one, other) == is_notable(other, one)
    assert not is_notable(one, one)


@given(st.floats(1, 600), st.lists(st.tuples(st.floats(0, 100), LOADS), max_size=60))
def test_writes_are_never_closer_than_the_rest_between_them(every: float, looks: list[tuple[float, Load]]) -> None:
    """Whatever changes how fast; and nothing notable stays unwritten once the rest is over."""
    plan, now = CostPlan(every), 0.0
    written: list[tuple[float, Load]] = []
    for seconds, load in looks:
        now += seconds
        cost = plan.due(now, load)
        if cost is not None:
            plan.written(now, load)
            written.append((now, load))
        elif written and now - written[-1][0] > every + 1e-6:
            assert not is_notable(written[-1][1], load)

    assert all(later - sooner >= every - 1e-6 for (sooner, _), (later, _) in pairwise(written))


def test_any_change_of_runs_is_written_when_five_rests_are_over() -> None:
    """A fifth of the runs may decide between two pods: what an autoscaler finds after calm minutes is exact."""
    plan = CostPlan(60)
    plan.written(0.0, Load(40, 5))

    assert [None, cost_of(Load(41, 5))] == [plan.due(299.9, Load(41, 5)), plan.due(300.0, Load(41, 5))]


@pytest.mark.parametrize(
    ("written", "now"),
    [
        (Load(40, 1_000), Load(40, 1_001)),
        (Load(40, 5, is_leaving=True), Load(41, 5, is_leaving=True)),
    ],
)
def test_what_changes_no_order_of_runs_is_never_written(written: Load, now: Load) -> None:
    plan = CostPlan(60)
    plan.written(0.0, written)

    assert plan.due(36_000.0, now) is None


def test_the_first_look_writes_as_a_container_may_have_started_anew_in_its_pod() -> None:
    assert 0 == CostPlan(60).due(0.0, Load(0, 0))


def test_a_write_that_failed_is_tried_again_when_its_wait_is_over() -> None:
    plan = CostPlan(60)
    plan.failed(0.0, 100.0)

    assert [None, 0] == [plan.due(99.9, Load(0, 0)), plan.due(100.0, Load(0, 0))]
