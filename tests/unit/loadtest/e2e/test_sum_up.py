"""The account of a load: what counts as lost, and what as calm."""

from typing import Any

import pytest

from loadtest.e2e.account import Account, Written, sum_up

WHOLE = {"s-0": Written(3, "aa"), "s-1": Written(4, "bb")}
DIGESTS = {"s-0": "aa", "s-1": "bb"}


def report(ended: int = 2, **more: Any) -> dict[str, Any]:
    return {"counts": {"attempts": 2}, "wrong": {}, "ended_runs": ended, **more}


def test_everything_read_as_written_is_calm() -> None:
    """The sum of an untroubled load."""
    account = sum_up(WHOLE, report(), DIGESTS, 2)

    assert (7, 0, 0, 0, 0) == (
        account.published, account.lost, account.repeated, account.reordered, account.abnormal_closes
    )  # fmt: skip
    assert account.is_calm


@pytest.mark.parametrize(
    ("wrong", "figures"),
    [
        ({"lost": 3}, (3, 0, 0)),
        ({"gap_evicted": 2, "digest": 1}, (3, 0, 0)),
        ({"repeated": 4}, (0, 4, 0)),
        ({"reordered": 5}, (0, 0, 5)),
    ],
)
def test_what_readers_found_wrong_is_told_apart(wrong: dict[str, int], figures: tuple[int, int, int]) -> None:
    """Lost, repeated, reordered."""
    account = sum_up(WHOLE, report(wrong=wrong), DIGESTS, 2)

    assert figures == (account.lost, account.repeated, account.reordered)
    assert not account.is_whole


def test_text_that_is_not_the_written_one_is_lost() -> None:
    """Although reader and gateway agree about it."""
    account = sum_up(WHOLE, report(), {**DIGESTS, "s-1": "cc"}, 2)

    assert 1 == account.lost


def test_reader_that_has_not_come_to_the_end_is_lost_once() -> None:
    """Its text is unfinished as well, which is the same loss."""
    account = sum_up(WHOLE, report(ended=1), {**DIGESTS, "s-1": ""}, 2)

    assert 1 == account.lost


def test_producer_that_failed_is_lost_once() -> None:
    """Its reader cannot come to an end then."""
    written = {**WHOLE, "s-1": Written(1, "b", "GaveUp: no gateway")}

    account = sum_up(written, report(ended=1), {**DIGESTS, "s-1": ""}, 2)

    assert 1 == account.lost
    assert "s-1: GaveUp: no gateway" in account.note()


def test_only_closes_that_a_drain_does_not_send_are_abnormal() -> None:
    """1006, and codes of refusals and errors."""
    counts = {"closed_1000": 1, "closed_1012": 2, "closed_4409": 3, "closed_1006": 4, "closed_1011": 5}

    account = sum_up(WHOLE, report(counts=counts), DIGESTS, 2)

    assert 9 == account.abnormal_closes
    assert account.is_whole
    assert not account.is_calm


def test_nothing_published_is_not_whole() -> None:
    """Nothing is lost where nothing was written: that proves nothing."""
    assert not Account(streams=2).is_whole
