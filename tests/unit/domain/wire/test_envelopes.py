"""Envelopes: what a frame does to its client's position, read from our own frames without parsing text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.cuts import CutStretch
from gateway.domain.streams.merge import merge
from gateway.domain.wire.cursor import MAX_SEQ, Cursor
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.envelopes import Envelopes
from gateway.domain.wire.frames import control_frame, forked_payload
from gateway.domain.wire.ws_frames import decode_texts, encode_text


def text_frame(seq: int, text: str = "a", at: int = 0) -> bytes:
    return (
        b'{"type":"text","seq":%d,"timestamp":1,"session_id":"s","payload":{"kind":"delta","run":"r","text":"%b","at":%d}}'
        % (seq, text.encode(), at)
    )


def on_line(line: str = "e.f") -> Envelopes:
    envelopes = Envelopes()
    envelopes.read(control_frame("s", 1, {"kind": "welcome", "cursor": f"{line}.0", "resumed": "full"}))
    return envelopes


@given(st.lists(st.binary(max_size=70_000), max_size=5))
def test_frames_that_were_encoded_come_apart_again(payloads: list[bytes]) -> None:
    assert list(decode_texts(b"".join(map(encode_text, payloads)))) == payloads


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_every_size_of_a_frame_comes_apart(size: int) -> None:
    assert list(decode_texts(encode_text(b"x" * size) + encode_text(b"y"))) == [b"x" * size, b"y"]


@pytest.mark.parametrize("seq", [1, 118, MAX_SEQ])
def test_text_puts_its_client_at_its_seq_on_the_line_of_before(seq: int) -> None:
    envelope = on_line().read(text_frame(seq))

    assert (envelope.kind, envelope.cursor, envelope.messages) == ("", f"e.f.{seq}", 1)


def test_a_merged_frame_stands_for_its_messages() -> None:
    entries = [LogEntry(seq, b"d", b"r", seq - 7, 1, text_frame(seq, "a", seq - 7)) for seq in (7, 8, 9)]
    (merged,) = merge(entries, 1_000)

    envelope = on_line().read(merged.frame)

    assert (envelope.cursor, envelope.messages) == ("e.f.9", 3)


def test_a_cut_stretch_stands_for_its_messages() -> None:
    head = text_frame(9).partition(b',"payload"')[0]

    envelope = on_line().read(CutStretch(5, 9, b"r", head).frame)

    assert (envelope.cursor, envelope.messages) == ("e.f.9", 5)


def test_a_new_fork_is_the_line_from_then_on() -> None:
    envelopes = on_line()
    forked = envelopes.read(control_frame("s", 1, forked_payload(Cursor("e", "g", 4), 9)))

    assert (forked.kind, forked.cursor) == ("forked", "e.g.4")
    assert envelopes.read(text_frame(5)).cursor == "e.g.5"


def test_a_welcome_before_a_gap_moves_nobody() -> None:
    """Who sees only the welcome must not take what the gap names for delivered."""
    envelopes = Envelopes()
    welcome = envelopes.read(control_frame("s", 1, {"kind": "welcome", "cursor": "e.f.9", "resumed": "gap"}))

    assert welcome.cursor is None
    assert envelopes.read(text_frame(10)).cursor == "e.f.10"


def test_only_the_last_part_of_a_snapshot_moves() -> None:
    envelopes = on_line()
    part = envelopes.read(control_frame("s", 1, {"kind": "snapshot", "run": "r", "text": "a"}))
    last = envelopes.read(control_frame("s", 1, {"kind": "snapshot", "run": "r", "text": "b", "cursor": "e.f.40"}))

    assert (part.cursor, part.is_part) == (None, True)
    assert (last.cursor, last.is_part) == ("e.f.40", False)


def test_a_frame_of_a_hook_with_a_cursor_of_its_own_moves_nobody() -> None:
    envelopes = on_line()
    state = envelopes.read(control_frame("s", 1, {"kind": "state", "cursor": "x.y.9"}))

    assert state.cursor is None
    assert envelopes.read(text_frame(1)).cursor == "e.f.1"


def test_line_ends_between_tokens_go() -> None:
    """A hook may have made the frame: SSE must not see a line of its own in it (S07)."""
    envelope = on_line().read(text_frame(1)[:-1] + b',\r\n"ext":{}\n}')

    assert b"\r" not in envelope.data
    assert b"\n" not in envelope.data
