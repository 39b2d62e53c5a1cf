"""The messages of a run: their order, sizes and sums."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.pieces import (
    DataPiece,
    EndReason,
    Piece,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    encode_json,
)
from gateway.domain.streams.run_script import MAX_TEXT_BYTES, RunScript


def test_each_piece_is_one_message_and_the_end_has_the_sums() -> None:
    script = RunScript("r1")
    pieces: list[Piece] = [ThinkingPiece("hm"), TextPiece("né"), TextPiece("e"), ToolPiece({"tool_calls": [1]})]
    pieces.append(DataPiece({"url": "x"}))

    messages = [script.start()]
    for piece in pieces:
        messages += script.payloads(piece)
    messages.append(script.end(StreamEnd(EndReason.COMPLETE, "stop", {"total_tokens": 3})))

    assert messages == [
        {"kind": "run_start", "run": "r1"},
        {"kind": "thinking", "run": "r1", "text": "hm"},
        {"kind": "delta", "run": "r1", "text": "né"},
        {"kind": "delta", "run": "r1", "text": "e"},
        {"kind": "tool", "run": "r1", "data": {"tool_calls": [1]}},
        {"kind": "data", "run": "r1", "data": {"url": "x"}},
        {
            "kind": "run_end",
            "run": "r1",
            "reason": "complete",
            "finish_reason": "stop",
            "usage": {"total_tokens": 3},
            "bytes": 4,
            "code_points": 3,
            "sha256": hashlib.sha256("née".encode()).hexdigest(),
            "reasoning": {"bytes": 2, "code_points": 2, "sha256": hashlib.sha256(b"hm").hexdigest()},
        },
    ]


def test_an_end_names_only_what_there_is() -> None:
    end = RunScript("r1").end(StreamEnd(EndReason.COMPLETE))

    assert end.keys() == {"kind", "run", "reason", "bytes", "code_points", "sha256", "reasoning"}


def test_an_end_says_what_went_wrong_and_what_was_replaced() -> None:
    end = RunScript("r1").end(StreamEnd(EndReason.FAILED, problem="line 3 is not JSON", replaced=2))

    assert (end["reason"], end["problem"], end["replaced"]) == ("failed", "line 3 is not JSON", 2)


@given(st.text(max_size=40), st.integers(1, 2_000))
def test_a_long_piece_becomes_several_messages_that_join_to_it(text: str, times: int) -> None:
    messages = RunScript("r1").payloads(TextPiece(text * times))

    assert "".join(message["text"] for message in messages) == text * times
    assert all(len(message["text"].encode()) <= MAX_TEXT_BYTES for message in messages)


def test_a_message_fits_the_limit_even_when_every_byte_is_escaped() -> None:
    messages = RunScript("r" * 128).payloads(TextPiece("\x01" * 100_000))

    assert max(len(encode_json(message)) for message in messages) < 64 * 1024
