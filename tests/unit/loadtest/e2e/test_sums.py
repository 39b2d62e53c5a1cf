"""Several loads as one."""

from loadtest.e2e.account import Account
from loadtest.e2e.sums import together


def test_what_any_load_lacks_is_in_the_sum() -> None:
    one = Account(2, published=10, lost=1, closes={1012: 2}, problems=["a"])
    other = Account(
        3, published=5, repeated=1, reordered=2, abnormal_closes=1, closes={1012: 1, 1006: 1}, wrong={"x": 1}
    )
    summed = together([one, other])

    assert (5, 15, 1, 1, 2, 1) == (
        summed.streams, summed.published, summed.lost, summed.repeated, summed.reordered, summed.abnormal_closes,
    )  # fmt: skip
    assert ({1012: 3, 1006: 1}, {"x": 1}, ["a"]) == (summed.closes, summed.wrong, summed.problems)
    assert not summed.is_whole


def test_admissions_are_the_sites_own_and_counted_once() -> None:
    """Each load has watched the same gateways."""
    summed = together([Account(1, admitted_over_budget=2, most_admitted=7), Account(1, admitted_over_budget=3)])

    assert (3, 7) == (summed.admitted_over_budget, summed.most_admitted)


def test_no_loads_are_no_proof() -> None:
    assert not together([]).is_whole
