"""Where a cursor stands on a log, and what must be announced (R18, R21)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.sessions.position import Gap, GapReason, Verdict, begin_at, hole, judge, judge_unknown
from gateway.domain.wire.cursor import Cursor

EVICTED, CHANGED, AHEAD = GapReason.EVICTED, GapReason.EPOCH_CHANGED, GapReason.AHEAD


BELOW = {"is_below": True}
VOID = {"is_below": True, "is_void": True}


def one_fork(head: int = 500, lost: int = 400, void: int = 300) -> LogState:
    return LogState("e1", (Fork("f1", 0),), head, lost, void)


def forked(head: int = 120, lost: int = 0, void: int = 0) -> LogState:
    return LogState(
        "e1",
        (Fork("f1", 0), Fork("f2", 100, {"r1": 40}), Fork("f3", 110, {"r1": 44, "r2": 7}, {"r2": 3})),
        head,
        lost,
        void,
    )


@pytest.mark.parametrize(("seq", "start", "gap"), [(12, 12, None), (13, 0, Gap(11, 13, AHEAD, 0))])
def test_a_cursor_among_held_messages_is_not_ahead(seq: int, start: int, gap: Gap | None) -> None:
    """Two are held above the head for replicas; a fail-over may have lost that they were seen."""
    verdict = judge(Cursor("e1", "f1", seq), LogState("e1", (Fork("f1", 0),), 10, 0, held=2))

    assert (verdict.start, verdict.gap) == (start, gap)


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        (400, Verdict(400)),
        (399, Verdict(399, **BELOW)),
        (300, Verdict(300, **BELOW)),
        (299, Verdict(299, **VOID)),
        (0, Verdict(0, **VOID)),
        (499, Verdict(499)),
        (500, Verdict(500)),
        (501, Verdict(0, Gap(501, 501, AHEAD, 0), **VOID)),
        (510, Verdict(0, Gap(501, 510, AHEAD, 0), **VOID)),
    ],
)
def test_the_boundaries_of_a_trimmed_log(seq: int, expected: Verdict) -> None:
    assert judge(Cursor("e1", "f1", seq), one_fork()) == expected


@pytest.mark.parametrize(
    ("fork", "seq", "expected"),
    [
        ("f1", 99, Verdict(99, forked=100)),
        ("f1", 100, Verdict(100, forked=100)),
        ("f1", 101, Verdict(100, Gap(101, 101, CHANGED, 100, {"r1": 40}))),
        ("f1", 107, Verdict(100, Gap(101, 107, CHANGED, 100, {"r1": 40}))),
        ("f2", 100, Verdict(100, forked=110)),
        ("f2", 110, Verdict(110, forked=110)),
        ("f2", 111, Verdict(110, Gap(111, 111, CHANGED, 110, {"r1": 44, "r2": 7}, {"r2": 3}))),
        ("f3", 120, Verdict(120)),
        ("f3", 121, Verdict(0, Gap(121, 121, AHEAD, 0))),
        ("nobody", 5, Verdict(0, Gap(1, 5, CHANGED, 0, {}))),
        ("nobody", 0, Verdict(0)),
    ],
)
def test_the_forks_of_an_epoch(fork: str, seq: int, expected: Verdict) -> None:
    assert judge(Cursor("e1", fork, seq), forked()) == expected


def test_a_cursor_of_another_epoch_is_trusted_for_nothing() -> None:
    verdict = judge(Cursor("e0", "f1", 945), one_fork(head=3, lost=0))

    assert verdict == Verdict(0, Gap(1, 945, CHANGED, 0, {}))


def test_what_was_never_delivered_is_no_gap() -> None:
    assert judge(Cursor("e0", "f1", 0), one_fork(head=3, lost=0)) == Verdict(0)


def test_a_rolled_back_cursor_can_be_below_the_retained_log_as_well() -> None:
    verdict = judge(Cursor("e1", "f1", 105), forked(lost=115))

    assert verdict == Verdict(100, Gap(101, 105, CHANGED, 100, {"r1": 40}), **BELOW)


def test_a_fork_and_a_trimmed_log_are_both_judged() -> None:
    assert judge(Cursor("e1", "f1", 90), forked(lost=95)) == Verdict(90, forked=100, **BELOW)


def test_a_position_in_a_session_just_made_belongs_to_another_life() -> None:
    log = one_fork(head=0, lost=0)

    assert judge_unknown(7, log) == Verdict(0, Gap(1, 7, GapReason.UNKNOWN_SESSION, 0))
    assert judge_unknown(0, log) == Verdict(0)


def test_who_wants_everything_is_told_what_is_gone() -> None:
    assert begin_at(0, one_fork()) == Verdict(0, **VOID)
    assert begin_at(0, one_fork(void=0)) == Verdict(0, **BELOW)
    assert begin_at(500, one_fork()) == Verdict(500)


def test_a_hole_ends_where_delivery_goes_on() -> None:
    assert hole(3, 9) == Gap(4, 9, EVICTED, 9)


def test_an_empty_gap_cannot_be() -> None:
    with pytest.raises(ValueError, match="a gap from 4 to 3"):
        Gap(4, 3, EVICTED, 3)


# ---- against a model that keeps every message ---------------------------------------------------------------------


@st.composite
def logs(draw: st.DrawFn) -> tuple[LogState, list[str]]:
    """A log, and which fork wrote each seq of it (index 0 unused)."""
    count = draw(st.integers(1, 4))
    bases = sorted(draw(st.lists(st.integers(0, 30), min_size=count - 1, max_size=count - 1)))
    forks = [Fork("f0", 0), *(Fork(f"f{i + 1}", base) for i, base in enumerate(bases))]
    head = draw(st.integers(forks[-1].base, 40))
    lost = draw(st.integers(0, head))
    void = draw(st.integers(0, lost))
    writers = ["", *(next(fork.id for fork in reversed(forks) if fork.base < seq) for seq in range(1, head + 1))]
    return LogState("e", tuple(forks), head, lost, void), writers


def received(log: LogState, writers: list[str], cursor: Cursor) -> list[str]:
    """Who wrote what a client with this cursor has: its fork's own messages above that fork's base."""
    base = next((fork.base for fork in log.forks if fork.id == cursor.fork), 0)
    return [writers[seq] if seq <= base else cursor.fork for seq in range(1, cursor.seq + 1)]


@given(logs(), st.integers(0, 5), st.integers(0, 50))
def test_verdicts_equal_those_of_a_model_that_compares_message_by_message(
    made: tuple[LogState, list[str]], fork: int, seq: int
) -> None:
    log, writers = made
    base = next((f.base for f in log.forks if f.id == f"f{fork}"), 0)
    cursor = Cursor("e", f"f{fork}", max(seq, base))
    is_known = any(f.id == cursor.fork for f in log.forks)
    has = received(log, writers, cursor)
    same = 0
    while is_known and same < min(len(has), log.head) and has[same] == writers[same + 1]:
        same += 1

    verdict = judge(cursor, log)

    gap = verdict.gap
    gone = set() if gap is None else set(range(gap.first, gap.last + 1))
    assert gone == set(range(same + 1, cursor.seq + 1))
    is_ahead = gap is not None and gap.reason is AHEAD
    assert verdict.start == (0 if is_ahead else same)
    assert (verdict.is_below, verdict.is_void) == (verdict.start < log.lost, verdict.start < log.void)
    assert verdict.has_gap == (gap is not None or verdict.is_void)
    is_silent_fork = is_known and cursor.fork != log.fork and not gone
    assert (verdict.forked is not None) == is_silent_fork
