"""Whole segments: fewer pieces, the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter.segments import MAX_JOINED_BYTES, can_join, ends_sentence, join

from sdk.python.tests.frame_texts import delta, frame, message


@pytest.mark.parametrize(
    ("text", "is_end"),
    [
        ("done.", True), ("really? yes", True), ("好。", True), ("a\nb", True), ("3.14", False), ("and", False),
        ("e.g", False), ("", False), ("wait… more", True),
    ],
)  # fmt: skip
def test_where_a_sentence_ends(text: str, is_end: bool) -> None:
    """Points inside of numbers and names are none."""
    assert ends_sentence(frame(delta(1, text, 0))) is is_end


@pytest.mark.parametrize(
    "second",
    [
        delta(3, "b", 1),
        delta(2, "b", 2),
        delta(2, "b", 1, run="other"),
        delta(2, "b"),
        message(2, {"kind": "thinking", "run": "r", "text": "b", "at": 1}),
        message(2, {"kind": "delta", "run": "r", "text": "b", "at": 1, "late": True}),
    ],
)
def test_what_does_not_follow_is_not_joined(second: str) -> None:
    """Another place, another run, another kind, or more to say than text."""
    assert not can_join(frame(delta(1, "a", 0)), frame(second))


def test_a_segment_is_bounded() -> None:
    """At the limit, and one byte beyond."""
    first = frame(delta(1, "a", 0))
    second = delta(2, "", 1)
    room = MAX_JOINED_BYTES - first.size_bytes - len(second)

    assert can_join(first, frame(delta(2, "b" * room, 1)))
    assert not can_join(first, frame(delta(2, "b" * (room + 1), 1)))


@given(st.lists(st.text(max_size=8), min_size=1, max_size=12))
def test_joined_deltas_are_the_same_text_over_the_same_messages(pieces: list[str]) -> None:
    """Any cut of any text."""
    joined, at = None, 0
    for seq, piece in enumerate(pieces, 1):
        one = frame(delta(seq, piece, at))
        at += len(piece.encode())
        assert joined is None or can_join(joined, one)
        joined = one if joined is None else join(joined, one)

    assert joined is not None
    assert (joined.first_seq, joined.seq, joined.text, joined.at) == (1, len(pieces), "".join(pieces), 0)
