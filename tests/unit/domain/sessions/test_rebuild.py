"""What a client below the retained log is told before and after the texts (G4)."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.sessions.position import Gap, hole
from gateway.domain.sessions.rebuild import Kept, Move, plan


def log(lost: int, void: int) -> LogState:
    return LogState("e1", (Fork("f1", 0),), lost + 10, lost, void)


def kept(*seqs: int) -> list[tuple[int, bytes]]:
    return [(seq, b"%d" % seq) for seq in seqs]


def test_what_texts_stand_for_is_no_gap() -> None:
    todo = plan(50, log(100, 40), [], has_texts=True)

    assert todo == ([], [Move(100)])


def test_a_gap_ends_where_texts_begin_to_stand_for_what_is_gone() -> None:
    todo = plan(10, log(100, 40), [], has_texts=True)

    assert todo == ([hole(10, 40)], [Move(100)])


def test_kept_items_split_the_gap_and_keep_their_place_after_the_texts() -> None:
    todo = plan(10, log(100, 40), kept(5, 11, 30, 40, 41, 70, 100, 101), has_texts=True)

    assert todo.before == [Kept(11, b"11"), hole(11, 29), Kept(30, b"30"), hole(30, 39), Kept(40, b"40")]
    assert todo.after == [Kept(41, b"41"), Move(69), Kept(70, b"70"), Move(99), Kept(100, b"100")]


def test_with_nothing_to_rebuild_it_from_all_of_it_is_a_gap() -> None:
    assert plan(10, log(100, 0), [], has_texts=False) == ([hole(10, 100)], [])
    assert plan(10, log(100, 100), kept(20), has_texts=False).before == [hole(10, 19), Kept(20, b"20"), hole(20, 100)]


@given(st.data())
def test_every_number_is_told_once_and_in_order(data: st.DataObject) -> None:
    lost = data.draw(st.integers(1, 60))
    void = data.draw(st.integers(0, lost))
    position = data.draw(st.integers(0, lost - 1))
    seqs = sorted(data.draw(st.sets(st.integers(1, 70))))
    has_texts = data.draw(st.booleans())

    todo = plan(position, log(lost, void), kept(*seqs), has_texts=has_texts)

    here, told = position, []
    for step in [*todo.before, *todo.after]:
        if isinstance(step, Gap):
            assert step.first == here + 1
            here = step.last
        elif isinstance(step, Kept):
            assert step.seq == here + 1
            told.append(step.seq)
            here = step.seq
        else:
            assert step.seq > here
            here = step.seq
    assert here == lost
    assert told == [seq for seq in seqs if position < seq <= lost]
    assert all(not isinstance(step, Gap) for step in todo.after)
    if has_texts:
        assert all(gap.last <= void for gap in todo.before if isinstance(gap, Gap))
