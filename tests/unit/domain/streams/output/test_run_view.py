"""One run out of a session: which one, what is new of it, and what is said where something is missing."""

from typing import Any

import pytest

from gateway.domain.streams.output.place import UNKNOWN, Place
from gateway.domain.streams.output.run_view import Began, Broken, Ended, Moment, Other, RunView, Text, Thinking, Thought
from tests.unit.domain.streams.output.logs import control

OPEN = {"is_started": True}


def text_frame(seq: int = 1, **payload: Any) -> dict[str, Any]:
    return {"type": "text", "seq": seq, "timestamp": 1, "session_id": "s", "payload": payload}


def moments(place: Place, *envelopes: dict[str, Any]) -> list[Moment]:
    view = RunView(place)
    found: list[Moment] = []
    for envelope in envelopes:
        for moment in view.moments(envelope):
            found.append(moment)
            match moment:
                case Began():
                    place.is_started = True
                case Text(_, until):
                    place.text_bytes = until
                case Ended():
                    place.is_over = True
                case _:
                    pass
    return found


def delta(text: str, at: int, run: str = "r1") -> dict[str, Any]:
    return text_frame(kind="delta", run=run, text=text, at=at)


def snapshot(**payload: Any) -> dict[str, Any]:
    return control({"kind": "snapshot", "run": "r1", "track": "text", **payload}).envelope


def test_the_next_run_that_begins_is_followed() -> None:
    """Not one that is on its way, nor one that ends."""
    place = Place()

    found = moments(
        place,
        delta("old", 9, "r0"),
        text_frame(kind="run_end", run="r0", reason="complete"),
        text_frame(kind="run_start", run="r1"),
        text_frame(kind="run_start", run="r2"),
        delta("Hi", 0),
    )

    assert place.run == "r1"
    assert found == [Began({"kind": "run_start", "run": "r1"}), Text("Hi", 2)]


def test_a_run_without_a_start_begins_with_its_first_text() -> None:
    """Pushes make such runs."""
    assert moments(Place(), delta("Hi", 0)) == [Began({}), Text("Hi", 2)]


def test_after_a_plain_cursor_the_run_that_goes_on_is_followed() -> None:
    place = Place(text_bytes=UNKNOWN, thinking_bytes=UNKNOWN)

    assert moments(place, delta("lo", 3)) == [Began({}), Text("lo", 5)]


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (0, []),
        (1, []),
        (2, [Text("!", 7)]),
        (4, [Text("ö!", 9)]),
        (6, [Text("llö!", 11)]),
        (7, [Other("text_missing", {"from": 6, "to": 7}, "missing-6"), Text("llö!", 12)]),
    ],
)
def test_what_the_reader_has_is_sliced_off(at: int, expected: list[Moment]) -> None:
    """By bytes: `llö!` has five of them, and the reader has six."""
    assert moments(Place("r1", **OPEN, text_bytes=6), delta("llö!", at)) == expected


def test_code_blocks_are_text_and_thinking_is_not() -> None:
    found = moments(
        Place("r1", **OPEN),
        text_frame(kind="thinking", run="r1", text="Hm", at=0),
        text_frame(kind="thinking", run="r1", text="", duration_ms=3, done=True),
        text_frame(kind="code_block", run="r1", text="```\n", at=0, block=1),
    )

    assert found == [Thinking("Hm", 2), Thought(), Text("```\n", 4)]


def test_what_belongs_to_no_run_is_told_while_this_one_is_open() -> None:
    place = Place("r1")
    note = text_frame(7, kind="data", data={"n": 1})

    found = moments(
        place, note, text_frame(kind="run_start", run="r1"), note, text_frame(kind="data", run="r2", data=1)
    )

    assert found[1:] == [Other("data", {"n": 1}, "7")]


def test_asks_are_told_under_their_name() -> None:
    found = moments(Place("r1", **OPEN), text_frame(kind="ask", run="r1", ask="a1", message="Go?"))

    assert found == [Other("ask", {"ask": "a1", "message": "Go?"}, "a1")]


def test_a_cut_is_told() -> None:
    found = moments(Place("r1", **OPEN), text_frame(9, kind="cut", run="r1"))

    assert found == [Other("cut", {}, "9")]


def test_a_gap_that_is_elsewhere_is_only_told() -> None:
    gap = control({"kind": "gap", "first": 1, "last": 4, "reason": "evicted", "cursor": "e.f.4"}).envelope

    assert moments(Place("r1", **OPEN), gap) == [Other("gap", {"first": 1, "last": 4, "reason": "evicted"}, "gap-1-4")]
    assert moments(Place("r1"), gap) == []


@pytest.mark.parametrize(
    ("lengths", "code"),
    [
        ({"runs": {"r1": 4}}, "text_rewritten"),
        ({"runs": {"r1": 5}}, None),
        ({"runs": {"r1": 6}}, None),
        ({"runs": {}}, "run_lost"),
        ({"runs": {"r1": 5}, "thinking": {}}, "text_rewritten"),
        ({"runs": {"r1": 5}, "thinking": {"r1": 2}}, "text_rewritten"),
        ({"runs": {"r1": 5}, "thinking": {"r1": 3}}, None),
    ],
)
def test_text_that_is_no_longer_true_ends_the_answer(lengths: dict[str, Any], code: str | None) -> None:
    """The server lost its end: a library cannot take back what it was given."""
    gap = control({"kind": "gap", "first": 8, "last": 9, "reason": "epoch_changed", **lengths}).envelope

    [found] = moments(Place("r1", **OPEN, text_bytes=5, thinking_bytes=3), gap)

    assert (found.code if isinstance(found, Broken) else None) == code


def test_a_snapshot_says_what_it_cannot_rebuild() -> None:
    found = moments(
        Place("r1"),
        snapshot(at=0, text="Hel", last=False, start={"kind": "run_start", "run": "r1"}),
        snapshot(at=3, text="lo", last=True, partial=True, bytes=9, end={"kind": "run_end", "reason": "complete"}),
    )

    assert found[1:] == [
        Text("Hel", 3),
        Text("lo", 5),
        Other("text_missing", {"from": 5, "to": 9}, "missing-5"),
        Ended({"kind": "run_end", "reason": "complete"}),
    ]


def test_a_snapshot_of_a_cut_run_says_so() -> None:
    found = moments(Place("r1", **OPEN), snapshot(at=0, text="Hel", last=True, cut=True))

    assert found == [Text("Hel", 3), Other("cut", {}, "cut-r1")]


def test_nothing_follows_the_end() -> None:
    end = text_frame(kind="run_end", run="r1", reason="complete")

    assert len(moments(Place("r1", **OPEN), end, delta("late", 0), end)) == 1


@pytest.mark.parametrize("envelope", [{}, {"type": "text", "payload": 1}, {"type": "text", "payload": {}}])
def test_a_frame_that_says_nothing_is_nothing(envelope: dict[str, Any]) -> None:
    assert moments(Place("r1"), envelope) == []
