"""What a client of a crowd counts as wrong: nothing that the protocol allows, and everything else."""

import hashlib
from collections import Counter
from typing import Any

from loadtest.crowd.text import Reading


def _reading(position: int = 5) -> Reading:
    reading = Reading(Counter())
    reading.begin(f"e.f1.{position}")
    return reading


def _delta(seq: int, text: str = "", at: int = 0) -> dict[str, Any]:
    return {"seq": seq, "payload": {"kind": "delta", "run": "r", "text": text, "at": at}}


def _gap(first: int, last: int, cursor: str, reason: str = "epoch_changed") -> dict[str, Any]:
    return {"kind": "gap", "first": first, "last": last, "reason": reason, "cursor": cursor}


def test_an_announced_fork_where_the_client_is_costs_nothing() -> None:
    """A restart of the server that lost nothing: the log goes on in another line."""
    reading = _reading()
    reading.begin("e.f2.5")

    reading.forked("e.f2.5")
    reading.message(_delta(6), 5)

    assert (+reading.wrong, reading.forks, reading.cursor) == (Counter(), 1, "e.f2.6")


def test_a_line_that_nothing_announced_is_wrong() -> None:
    """The welcome names another line, then a message comes."""
    reading = _reading()
    reading.begin("e.f2.5")

    reading.message(_delta(6), 5)

    assert reading.wrong == Counter(line=1)


def test_a_fork_at_another_place_is_wrong() -> None:
    """It must begin where the client stands."""
    reading = _reading()

    reading.forked("e.f2.4")

    assert reading.wrong == Counter(forked_elsewhere=1)


def test_what_a_gap_takes_back_is_counted_by_its_reason_and_read_again() -> None:
    """The server lost the last two messages: others come in their place, and are no repeats."""
    reading = _reading()
    above = reading.gap(_gap(4, 5, "e.f2.3"))

    above = reading.message(_delta(4), above)

    assert (reading.wrong, reading.cursor, above) == (Counter(gap_epoch_changed=2), "e.f2.4", 4)


def test_a_gap_that_both_sockets_of_a_move_bring_counts_once() -> None:
    """The second one finds the client there."""
    reading = _reading()

    for _ in range(2):
        reading.gap(_gap(4, 5, "e.f2.3"))

    assert reading.wrong == Counter(gap_epoch_changed=2)


def test_the_digest_of_a_run_with_a_gap_is_not_compared_that_of_the_next_one_is() -> None:
    """What is missing was named; the next run has no excuse."""
    reading = _reading()
    end = {"kind": "run_end", "run": "r", "reason": "complete", "sha256": hashlib.sha256(b"whole").hexdigest()}
    reading.gap(_gap(6, 7, "e.f1.7", "evicted"))
    reading.message({"seq": 8, "payload": end}, 7)

    reading.message({"seq": 9, "payload": end}, 8)

    assert reading.wrong == Counter(gap_evicted=2, digest=1)


def test_a_hole_that_no_gap_named_is_lost_until_it_comes_late() -> None:
    """Late is out of order, and twice is repeated."""
    reading = _reading()
    above = reading.message(_delta(8), 5)
    above = reading.message(_delta(6), above)

    reading.message(_delta(8), above)

    assert +reading.wrong == Counter(lost=1, reordered=1, repeated=1)
