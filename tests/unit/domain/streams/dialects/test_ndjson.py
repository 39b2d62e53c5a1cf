"""Our own line schema, member by member."""

from typing import Any

import pytest

from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.dialects.sendable import MAX_DATA_BYTES
from gateway.domain.streams.pieces import DataPiece, EndReason, StreamEnd, TextPiece, ThinkingPiece, ToolPiece
from tests.unit.domain.streams.dialects.reading import data_of, lines, read


def test_each_kind_of_line_is_one_piece() -> None:
    data = lines(
        {"thinking": "hm"},
        {"text": "Hi", "unknown": 1, "thinking": None},
        {"tool": {"name": "f"}},
        {"data": {"url": "x"}},
        {"event": "end", "reason": "complete", "usage": {"output_tokens": 3}},
    )

    pieces, end = read(DialectName.NDJSON, data)

    assert pieces == [ThinkingPiece("hm"), TextPiece("Hi"), ToolPiece({"name": "f"}), DataPiece({"url": "x"})]
    assert end == StreamEnd(EndReason.COMPLETE, usage={"output_tokens": 3})


def test_a_line_with_several_is_taken_in_a_fixed_order() -> None:
    pieces, _ = read(DialectName.NDJSON, lines({"data": {}, "tool": {}, "text": "b", "thinking": "a"}))

    assert pieces == [ThinkingPiece("a"), TextPiece("b"), ToolPiece({}), DataPiece({})]


@pytest.mark.parametrize(
    ("members", "end"),
    [
        ({}, StreamEnd(EndReason.COMPLETE)),
        ({"reason": "length"}, StreamEnd(EndReason.COMPLETE, "length")),
        ({"reason": "complete", "finish_reason": "stop"}, StreamEnd(EndReason.COMPLETE, "stop")),
        ({"usage": 7}, StreamEnd(EndReason.COMPLETE)),
        (
            {"reason": "failed"},
            StreamEnd(EndReason.FAILED, None, None, "line 1 ends the stream as failed: no message given"),
        ),
        (
            {"reason": "incomplete", "message": "out of time", "usage": {"n": 1}},
            StreamEnd(EndReason.INCOMPLETE, None, {"n": 1}, "line 1 ends the stream as incomplete: out of time"),
        ),
    ],
)
def test_the_end_says_how_it_ended_and_nothing_after_counts(members: dict[str, Any], end: StreamEnd) -> None:
    assert read(DialectName.NDJSON, lines({"event": "end", **members}, {"text": "late"}) + b"junk") == ([], end)


def test_without_an_end_it_is_incomplete() -> None:
    _, end = read(DialectName.NDJSON, lines({"text": "a"}))

    assert end == StreamEnd(EndReason.INCOMPLETE, problem='the stream ended after line 1 without {"event":"end"}')


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({}, "line 1 has none of text, thinking, tool, data, event, error"),
        ({"txt": "a"}, "line 1 has none of text, thinking, tool, data, event, error"),
        ({"text": 1}, "line 1 has a text that is no text"),
        ({"text": "a", "tool": "f"}, "line 1 has a tool that is no object"),
        ({"data": []}, "line 1 has a data that is no object"),
        ({"event": "start"}, "line 1 has an event that is not `end`"),
        ({"event": "end", "reason": 1}, "line 1 has a reason that is no text"),
    ],
)
def test_an_unknown_line_is_a_bad_line_and_gives_nothing(line: dict[str, Any], problem: str) -> None:
    assert read(DialectName.NDJSON, lines(line)) == ([], StreamEnd(EndReason.FAILED, problem=problem))


def test_there_is_no_framing() -> None:
    _, end = read(DialectName.NDJSON, b'data: {"text":"a"}\n')

    assert end.problem == "line 1 is not JSON"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"type": "t", "n": 2**53}, "nested too deep, or a number beyond 2^53"),
        ({"type": "t", "n": 1e999}, "nested too deep, or a number beyond 2^53"),
        ({"type": "t", "x": "é" * (MAX_DATA_BYTES // 2)}, f"{MAX_DATA_BYTES + 19} bytes"),
    ],
)
def test_data_that_no_message_can_carry_is_named_and_fails_nothing(data: dict[str, Any], why: str) -> None:
    line = lines({"data": data}).replace(b"Infinity", b"1e999")

    pieces, end = read(DialectName.NDJSON, line + lines({"event": "end"}))

    assert data_of(pieces) == [{"type": "t", "omitted": why}]
    assert end.reason is EndReason.COMPLETE


def test_data_of_just_the_most_bytes_is_carried() -> None:
    data = {"type": "t", "x": "é" * ((MAX_DATA_BYTES - 20) // 2)}

    pieces, _ = read(DialectName.NDJSON, lines({"data": data}))

    assert data_of(pieces) == [data]


def test_data_as_deep_as_a_message_may_be_is_carried() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"x": value}
        return value

    pieces, _ = read(DialectName.NDJSON, lines({"data": nested(31)}, {"data": nested(32)}))

    assert [data.get("omitted") is None for data in data_of(pieces)] == [True, False]
