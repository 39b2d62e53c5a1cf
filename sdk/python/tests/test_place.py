"""The place: over any number of channels, each message passes once and in order, or its loss is told."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter.cursor import Cursor
from relayrouter.errors import ProtocolError
from relayrouter.place import MAX_HELD_FRAMES, Lane, Place, Step

from sdk.python.tests.frame_texts import LINE, control, delta, frame, gap, message, welcome


def entered(place: Place, seq: int = 0, line: str = LINE) -> Lane:
    lane = place.enter()
    place.take(lane, frame(welcome(seq, line)), 0.0)
    return lane


def take(place: Place, lane: Lane, *raws: str, now: float = 0.0) -> list[Step]:
    return [step for raw in raws for step in place.take(lane, frame(raw), now)]


def seqs(steps: list[Step]) -> list[tuple[int | None, int | None]]:
    return [(step.frame.first_seq, step.frame.seq) for step in steps if not step.frame.is_control]


def test_what_came_already_is_dropped() -> None:
    """A replay repeats nothing (R19)."""
    place = Place()
    lane = entered(place)

    assert seqs(take(place, lane, delta(1, "a"), delta(2, "b"), delta(1, "a"), delta(2, "b"))) == [(1, 1), (2, 2)]


def test_a_merged_frame_that_overlaps_passes_whole() -> None:
    """What of its text is new is the texts' affair; the position is right."""
    place = Place()
    lane = entered(place, 4)
    steps = take(place, lane, delta(5, "a"), delta(7, "abc", first_seq=4))

    assert seqs(steps) == [(5, 5), (4, 7)]
    assert str(place.cursor) == f"{LINE}.7"


def test_a_frame_that_came_too_early_waits_for_the_one_before() -> None:
    """And is released by it, in order."""
    place = Place()
    lane = entered(place)

    assert take(place, lane, delta(3, "c"), delta(2, "b"), now=5.0) == []
    assert place.hole_since == 5.0
    assert seqs(take(place, lane, delta(1, "a"), now=6.0)) == [(1, 1), (2, 2), (3, 3)]
    assert place.hole_since is None


def test_a_hole_that_nobody_fills_is_told() -> None:
    """What never came is named, and what has come is delivered."""
    place = Place()
    lane = entered(place)
    take(place, lane, delta(3, "c"), delta(5, "e"))
    steps = place.give_up_hole()

    assert [(step.missing, step.frame.seq) for step in steps] == [((1, 2), 3)]
    assert [(step.missing, step.frame.seq) for step in place.give_up_hole()] == [((4, 4), 5)]
    assert place.give_up_hole() == []


def test_history_fills_a_hole_on_the_same_log_only() -> None:
    """Another log's numbers mean something else."""
    place = Place()
    lane = entered(place)
    take(place, lane, delta(3, "c"))
    pages = [frame(delta(1, "a")), frame(delta(3, "bc", first_seq=2))]

    assert place.back_fill(pages, 1.0, Cursor("e2", "f1", 3)) == []
    assert seqs(place.back_fill(pages, 1.0, Cursor("e1", "f1", 3))) == [(1, 1), (2, 3)]


def test_history_may_say_that_a_part_is_gone() -> None:
    """Its gap moves the place, and what waited follows."""
    place = Place()
    lane = entered(place)
    take(place, lane, delta(5, "e"))
    steps = place.back_fill([frame(gap(1, 4, "evicted", f"{LINE}.4"))], 1.0, Cursor("e1", "f1", 4))

    assert [step.frame.kind for step in steps] == ["gap", "delta"]


@pytest.mark.parametrize("count", [MAX_HELD_FRAMES - 1, MAX_HELD_FRAMES, MAX_HELD_FRAMES + 1])
def test_what_waits_is_bounded(count: int) -> None:
    """Beyond the bound the last ones come again by history."""
    place = Place()
    lane = entered(place)
    take(place, lane, *(delta(seq, "x") for seq in range(2, count + 2)))

    assert len(take(place, lane, delta(1, "a"))) == 1 + min(count, MAX_HELD_FRAMES)


def test_two_channels_make_one_order() -> None:
    """While the new one catches up the old one still delivers."""
    place = Place()
    old = entered(place)
    take(place, old, delta(1, "a"))
    new = entered(place, 1)
    steps = (
        take(place, old, delta(2, "b"))
        + take(place, new, delta(3, "bc", first_seq=2))
        + take(place, old, delta(3, "c"))
    )

    assert seqs(steps) == [(2, 2), (2, 3)]
    assert str(place.cursor) == f"{LINE}.3"


def test_a_welcome_does_not_move_a_place_that_is_known() -> None:
    """Only gap, forked and snapshot explain a jump."""
    place = Place()
    entered(place, 4)
    entered(place, 9)

    assert str(place.cursor) == f"{LINE}.4"


def test_a_channel_that_is_still_on_the_old_log_counts_no_more() -> None:
    """Until it hears of the new one itself."""
    place = Place()
    old, new = entered(place, 4), entered(place, 4)
    take(place, new, control("forked", cursor="e1.f2.4", base=4), delta(5, "x"))

    assert take(place, old, delta(6, "y")) == []
    assert take(place, old, control("forked", cursor="e1.f2.4", base=4)) == []
    assert seqs(take(place, old, delta(6, "z"))) == [(6, 6)]


def test_a_gap_that_another_channel_has_delivered_is_none() -> None:
    """What one gateway evicted the other still had."""
    place = Place()
    old = entered(place, 4)
    new = entered(place, 4)
    take(place, old, delta(5, "a"), delta(6, "b"))

    assert take(place, new, gap(5, 6, "evicted", f"{LINE}.6")) == []
    assert [step.frame.kind for step in take(place, new, gap(7, 9, "evicted", f"{LINE}.9"))] == ["gap"]


def test_numbers_of_another_epoch_are_no_repeats() -> None:
    """The log began again (R18)."""
    place = Place()
    lane = entered(place, 40)
    steps = take(place, lane, gap(1, 40, "epoch_changed", "e2.f9.0", runs={}), delta(1, "x"))

    assert [step.frame.kind for step in steps] == ["gap", "delta"]
    assert str(place.cursor) == "e2.f9.1"


def test_a_cursor_beyond_the_head_goes_back() -> None:
    """The server lost writes: what comes next has numbers that were used."""
    place = Place()
    lane = entered(place, 40)
    steps = take(place, lane, gap(31, 40, "ahead", f"{LINE}.30"), delta(31, "x"))

    assert seqs(steps) == [(31, 31)]


def test_a_channel_on_an_unexplained_log_is_followed_with_its_first_message() -> None:
    """A gateway that has nothing to explain says nothing."""
    place = Place()
    entered(place, 4)
    lane = entered(place, 2, "e1.f2")

    assert seqs(take(place, lane, delta(3, "x"))) == [(3, 3)]
    assert str(place.cursor) == "e1.f2.3"


def test_a_snapshot_moves_the_place_with_its_last_part() -> None:
    """Its parts pass, and the log goes on after it."""
    place = Place()
    lane = entered(place, 3)
    steps = take(
        place, lane, control("snapshot", run="r", text="a", at=0),
        control("snapshot", run="r", text="b", at=1, last=True, cursor=f"{LINE}.9"),
        message(10, {"kind": "data"}),
    )  # fmt: skip

    assert [(step.frame.kind, str(step.cursor)) for step in steps] == [
        ("snapshot", f"{LINE}.3"), ("snapshot", f"{LINE}.9"), ("data", f"{LINE}.10"),
    ]  # fmt: skip


def test_a_snapshot_behind_the_other_channel_is_not_shown() -> None:
    """It would take back what was delivered meanwhile."""
    place = Place()
    old, new = entered(place, 3), entered(place, 3)
    take(place, old, delta(4, "x"))

    assert take(place, new, control("snapshot", run="r", text="a", at=0, cursor=f"{LINE}.4")) == []
    assert seqs(take(place, new, delta(5, "y"))) == [(5, 5)]


@pytest.mark.parametrize("bad", [control("welcome"), control("gap", cursor="x"), control("forked", cursor=7)])
def test_a_position_without_a_cursor_is_refused(bad: str) -> None:
    """Nothing could be counted from it."""
    place = Place()
    lane = place.enter() if "welcome" in bad else entered(place)
    with pytest.raises(ProtocolError):
        place.take(lane, frame(bad), 0.0)


def test_a_message_before_welcome_or_without_a_seq_is_refused() -> None:
    """It belongs nowhere."""
    with pytest.raises(ProtocolError):
        Place().take(Lane(), frame(delta(1, "x")), 0.0)
    place = Place()
    with pytest.raises(ProtocolError):
        place.take(entered(place), frame('{"type":"text","payload":{"kind":"delta"}}'), 0.0)


@given(st.integers(1, 60), st.integers(0, 2**32), st.integers(1, 3), st.booleans())
def test_any_order_any_repeats_and_any_merging_within_the_window_pass_once(
    count: int, seed: int, lanes: int, has_extra: bool
) -> None:
    """Every message exactly once and in order, whichever channel brings it."""
    rng = random.Random(seed)
    place = Place()
    entry = [entered(place) for _ in range(lanes)]
    frames = [(seq, seq) for seq in range(1, count + 1)]
    if has_extra:
        for _ in range(count):
            first = rng.randint(1, count)
            frames.append((first, rng.randint(first, count)))
    order = sorted(range(len(frames)), key=lambda index: frames[index][0] + rng.uniform(0, 40))
    covered: list[int] = []
    for index in order:
        first, last = frames[index]
        before = place.cursor.seq if place.cursor is not None else 0
        for step in take(place, rng.choice(entry), delta(last, "x", first_seq=first)):
            assert (step.frame.first_seq or 0) <= before + 1
            covered += range(before + 1, (step.frame.seq or 0) + 1)
            before = step.frame.seq or 0

    assert covered == list(range(1, count + 1))
    assert place.hole_since is None
