"""The reader's place: next, again, missing, and positions that the server names."""

import pytest

from gateway.adapters.client.frames import BadFrame, decode_frame
from gateway.adapters.client.place import Offer, Place
from gateway.domain.wire.cursor import Cursor
from tests.unit.adapters.client.frame_texts import LINE, control, delta, gap, message, welcome


def place_at(seq: int) -> Place:
    place = Place()
    place.follow(decode_frame(welcome(seq)))
    return place


def offer(place: Place, *frames: str) -> list[Offer]:
    return [place.offer(decode_frame(frame)) for frame in frames]


def test_the_cursor_names_the_last_message_applied() -> None:
    place = place_at(4)

    assert offer(place, delta(5, "a"), delta(8, "bcd", first_seq=6)) == [Offer.NEXT, Offer.NEXT]
    assert place.cursor == Cursor("e1", "f1", 8)
    assert place.tally.messages == 4


def test_what_came_before_is_dropped_and_counted() -> None:
    place = place_at(4)

    assert offer(place, delta(4, "a"), delta(5, "b"), delta(5, "b")) == [Offer.REPEAT, Offer.NEXT, Offer.REPEAT]
    assert place.tally.repeated == 2
    assert place.seq == 5


def test_a_merged_frame_that_overlaps_is_next_and_counts_only_what_is_new() -> None:
    place = place_at(4)

    assert offer(place, delta(6, "abc", first_seq=3)) == [Offer.NEXT]
    assert (place.tally.messages, place.tally.repeated) == (2, 0)


def test_a_hole_is_asked_for_once_and_then_counted() -> None:
    place = place_at(4)

    assert offer(place, delta(7, "x")) == [Offer.HOLE]
    assert place.seq == 4
    place.follow(decode_frame(welcome(4)))
    assert offer(place, delta(7, "x"), delta(5, "late"), delta(7, "x")) == [Offer.NEXT, Offer.REPEAT, Offer.REPEAT]
    assert (place.tally.missing, place.tally.reordered, place.tally.repeated) == (2, 1, 1)


def test_a_hole_that_is_filled_after_asking_costs_nothing() -> None:
    place = place_at(4)
    offer(place, delta(7, "x"))
    place.follow(decode_frame(welcome(4)))

    assert offer(place, delta(7, "abc", first_seq=5)) == [Offer.NEXT]
    assert (place.tally.missing, place.tally.messages) == (0, 3)


def test_a_welcome_that_skips_messages_without_a_gap_is_a_loss() -> None:
    place = place_at(4)
    place.follow(decode_frame(welcome(9)))

    assert place.tally.missing == 5


def test_a_gap_moves_the_place_and_is_counted_by_reason() -> None:
    place = place_at(4)
    place.follow(decode_frame(gap(5, 7, "evicted", "e1.f1.7")))

    assert offer(place, delta(8, "x")) == [Offer.NEXT]
    assert place.tally.gaps == {"evicted": 1}
    assert (place.tally.announced, place.tally.missing) == (3, 0)


def test_a_fork_changes_the_line_and_loses_nothing() -> None:
    place = place_at(4)
    place.follow(decode_frame(control("forked", cursor="e1.f2.4", base=4)))

    assert offer(place, delta(5, "x")) == [Offer.NEXT]
    assert place.cursor == Cursor("e1", "f2", 5)
    assert place.tally.forks == 1


def test_numbers_of_another_epoch_are_no_repeats() -> None:
    place = place_at(40)
    place.follow(decode_frame(welcome(0, line="e2.f9")))
    place.follow(decode_frame(gap(1, 40, "epoch_changed", "e2.f9.0", runs={})))

    assert offer(place, delta(1, "x")) == [Offer.NEXT]
    assert (place.tally.repeated, place.tally.announced, place.tally.missing) == (0, 40, 0)


@pytest.mark.parametrize("bad", [control("welcome"), control("gap", cursor="x"), control("forked", cursor=7)])
def test_a_position_without_a_cursor_is_refused(bad: str) -> None:
    with pytest.raises(BadFrame):
        Place().follow(decode_frame(bad))


def test_a_message_before_welcome_or_without_a_seq_is_refused() -> None:
    with pytest.raises(BadFrame):
        Place().offer(decode_frame(delta(1, "x")))
    with pytest.raises(BadFrame):
        place_at(0).offer(decode_frame('{"type":"text","payload":{"kind":"delta"}}'))


@pytest.mark.parametrize(
    "bad", ["", "[]", "{", '{"type":"text"}', '{"type":"text","payload":{}}', '{"type":1,"payload":{"kind":"x"}}']
)
def test_what_is_no_envelope_is_refused(bad: str) -> None:
    with pytest.raises(BadFrame):
        decode_frame(bad)


def test_unknown_fields_and_kinds_pass_through() -> None:
    frame = decode_frame('{"type":"text","seq":3,"new":1,"payload":{"kind":"later","run":7,"text":[],"at":"x"}}')

    assert (frame.kind, frame.seq, frame.first_seq, frame.run, frame.text, frame.at) == ("later", 3, 3, None, "", None)
    assert decode_frame(message(1, {"kind": "data"})).is_control is False


def test_the_last_part_of_a_snapshot_names_the_position() -> None:
    place = Place()
    place.follow(decode_frame(welcome(3)))
    place.follow(decode_frame(control("snapshot", run="r", text="", at=0, cursor=f"{LINE}.9")))
    offers = [place.offer(decode_frame(message(10, {"kind": "cut", "run": "r"})))]

    assert offers == [Offer.NEXT]
    assert (place.seq, place.tally.snapshots, place.tally.missing) == (10, 1, 0)
