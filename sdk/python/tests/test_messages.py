"""Frames: what is none is refused, what is new passes through, and no number is rounded."""

import pytest
from relayrouter.cursor import MAX_SEQ, Cursor
from relayrouter.errors import ProtocolError
from relayrouter.messages import decode_frame, decode_frames

from sdk.python.tests.frame_texts import message


@pytest.mark.parametrize(
    "bad",
    [
        "", "[]", "{", "<html>", '{"type":"text"}', '{"type":"text","payload":{}}', '{"type":1,"payload":{"kind":"x"}}',
        '{"type":"text","seq":-1,"payload":{"kind":"x"}}', '{"type":"text","seq":true,"payload":{"kind":"x"}}',
        '{"type":"text","seq":1,"first_seq":2,"payload":{"kind":"x"}}',
        '{"type":"text","seq":1.5,"payload":{"kind":"x"}}',
        "[" * 100_000, '{"type":"text","seq":' + "9" * 6000 + ',"payload":{"kind":"x"}}',
    ],
)  # fmt: skip
def test_what_is_no_envelope_is_refused_and_may_be_tried_again(bad: str) -> None:
    """It was a proxy's, most likely."""
    with pytest.raises(ProtocolError) as caught:
        decode_frame(bad)

    assert caught.value.retryable


@pytest.mark.parametrize("raw", ["{", "<html>", "[" * 100_000, "[1]", "[null]", '"[]"', "[[]]", '[[{"type":"text"}]]'])
def test_what_is_no_envelope_is_refused_in_a_frame_of_several_too(raw: str) -> None:
    """An array in an array is none either."""
    with pytest.raises(ProtocolError) as caught:
        list(decode_frames(raw))

    assert caught.value.retryable


def test_several_envelopes_come_in_order_and_count_until_a_bad_one() -> None:
    """Their sizes add up to the message's, for acknowledgements."""
    good = [message(1, {"kind": "data"}), message(2, {"kind": "data"})]
    whole, broken = f"[{','.join(good)}]", f"[{','.join(good)},7,{good[0]}]"
    frames = decode_frames(broken)

    assert [next(frames).seq, next(frames).seq] == [1, 2]
    with pytest.raises(ProtocolError):
        next(frames)
    assert [frame.size_bytes for frame in decode_frames(whole)] == [len(whole) // 2] * 2
    assert [frame.seq for frame in decode_frames(good[1])] == [2]


def test_the_greatest_number_is_taken_and_the_next_one_refused_for_good() -> None:
    """Browsers would round it; it would be the same again (B09)."""
    assert decode_frame(message(MAX_SEQ, {"kind": "data"})).seq == MAX_SEQ
    with pytest.raises(ProtocolError) as caught:
        decode_frame(message(MAX_SEQ + 1, {"kind": "data"}))
    assert not caught.value.retryable


def test_unknown_fields_and_kinds_pass_through() -> None:
    """Fields are only ever added."""
    frame = decode_frame('{"type":"text","seq":3,"new":1,"payload":{"kind":"later","run":7,"text":[],"at":"x"}}')

    assert (frame.kind, frame.seq, frame.first_seq, frame.run, frame.text, frame.at) == ("later", 3, 3, None, "", None)


@pytest.mark.parametrize("text", [f"e.f.{MAX_SEQ}", "0.0.0", "abc.def.1"])
def test_a_cursor_comes_back_as_it_was(text: str) -> None:
    """One value, never a number."""
    assert str(Cursor.parse(text)) == text


@pytest.mark.parametrize("text", ["", "e.f", "e.f.-1", "e.f.01", "E.f.1", f"e.f.{MAX_SEQ + 1}", "e.f.1.2", "e..1"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    """A stored value may be damaged."""
    with pytest.raises(ProtocolError):
        Cursor.parse(text)
