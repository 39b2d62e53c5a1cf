"""Whether gateways let more in than their budget: at its edge, over windows, and as seen by answers that overlap."""

from typing import Any

from loadtest.e2e.admissions import Admissions, windows_over


def told(*seconds: tuple[float, int], per_second: float | None = 10, burst: float | None = 5) -> dict[str, Any]:
    return {
        "kinds": {"resume": {"per_second": per_second, "burst": burst}},
        "by_second": [{"at": at, "new": 0, "resume": count} for at, count in seconds],
    }


def test_second_at_the_budget_is_within_it() -> None:
    """The bucket's burst, and what flows in meanwhile."""
    assert 0 == windows_over({100: 15}, 10, 5)
    assert 1 == windows_over({100: 16}, 10, 5)


def test_seconds_that_are_each_within_may_be_too_many_together() -> None:
    """A bucket that was emptied is not full again a second later."""
    assert 1 == windows_over({100: 15, 101: 11}, 10, 5)


def test_quiet_seconds_fill_the_bucket() -> None:
    """The same two seconds with a pause between."""
    assert 0 == windows_over({100: 15, 102: 15}, 10, 5)


def test_second_that_is_told_again_counts_once() -> None:
    """Answers overlap, and their moments differ by some ms."""
    admissions = Admissions()

    admissions.note("a", told((100.999, 8), (101.999, 3)))
    admissions.note("a", told((101.001, 8), (102.001, 4)))

    assert [8, 4] == list(admissions.by_second().values())
    assert 0 == admissions.over_budget()


def test_gateways_have_a_budget_each() -> None:
    """Two at their limit are not over it, and together above a pace that is for all."""
    admissions = Admissions()

    admissions.note("a", told((100.0, 15)))
    admissions.note("b", told((100.2, 15)))

    assert 0 == admissions.over_budget()
    assert 1 == admissions.over_pace(29)
    assert 0 == admissions.over_pace(30)
    assert 15 == admissions.most


def test_gateway_without_a_limit_is_never_over() -> None:
    """`admission.resumes_per_second: 0`."""
    admissions = Admissions()

    admissions.note("a", told((100.0, 1_000), per_second=None, burst=None))

    assert 0 == admissions.over_budget()


def test_seconds_before_the_load_are_not_its_own() -> None:
    """Gateways tell what was long before; the second in which it began counts."""
    admissions = Admissions(since=101.5)

    admissions.note("a", told((100.499, 8), (100.5, 3), (101.9, 4)))

    assert [3, 4] == list(admissions.by_second().values())
