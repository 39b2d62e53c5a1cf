"""Whom a scale-in took, and whether what is left is even."""

import pytest

from loadtest.e2e.pods_seen import Look, Pod, is_even, removals


def pod(name: str, runs: int, *, is_ready: bool = True, is_leaving: bool = False) -> Pod:
    return Pod(name, runs, connections=10, cost=None, is_ready=is_ready, is_leaving=is_leaving)


def look(*pods: Pod) -> Look:
    return Look(0.0, pods)


def test_who_is_leaving_was_taken_with_the_runs_of_the_look_before() -> None:
    """A drain empties it at once: what it has then says nothing."""
    found = removals([look(pod("a", 7), pod("b", 9)), look(pod("a", 0, is_leaving=True), pod("b", 9))])

    assert [("a", 7, True)] == [(one.taken.name, one.taken.runs, one.is_fewest) for one in found]


def test_a_pod_with_more_runs_than_another_is_the_wrong_one() -> None:
    found = removals([look(pod("a", 7), pod("b", 6)), look(pod("b", 6))])

    assert [False] == [one.is_fewest for one in found]


def test_a_pod_that_leaves_for_several_looks_is_one_removal() -> None:
    leaving = look(pod("a", 3, is_leaving=True), pod("b", 9))

    assert 1 == len(removals([look(pod("a", 3), pod("b", 9)), leaving, leaving, look(pod("b", 9))]))


def test_a_pod_that_is_not_ready_is_no_choice_of_runs() -> None:
    """Kubernetes takes it first, whatever it costs; and what is leaving is no candidate any more."""
    first = look(pod("a", 5), pod("b", 9), pod("c", 0, is_ready=False), pod("d", 1, is_leaving=True))
    found = removals([first, look(pod("b", 9), pod("c", 0, is_ready=False))])

    assert [("a", ("b",))] == [(one.taken.name, tuple(other.name for other in one.others)) for one in found]


def test_what_is_told_names_all() -> None:
    found = removals([look(pod("a", 12), pod("b", 9)), look(pod("a", 12))])

    assert ["9 of 9, 12"] == [one.told() for one in found]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], False),
        ([100, 100, 100, 100], True),
        ([130, 90, 90, 90], True),
        ([131, 89, 90, 90], False),
        ([1150, 950, 950, 950], True),
        ([1151, 949, 950, 950], False),
        ([20, 0], True),
        ([21, 0], False),
    ],
)
def test_even_is_what_no_gateway_would_change(counts: list[int], expected: bool) -> None:
    assert expected == is_even(counts)
