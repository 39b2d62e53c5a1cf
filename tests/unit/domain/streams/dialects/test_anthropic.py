"""Events of the Messages API: blocks and their deltas, calls that overlap, usage in two parts, ends and errors."""

from typing import Any

import pytest

from gateway.domain.streams.dialects import AnthropicDialect, DialectName
from gateway.domain.streams.pieces import DataPiece, EndReason, StreamEnd, TextPiece, ThinkingPiece, ToolPiece
from tests.unit.domain.streams.dialects.reading import lines, read, read_by_many_hands, tools_of


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind} | members}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def arguments(index: int, part: str) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=part)


def test_thinking_and_text_are_told_apart_and_signatures_left_out() -> None:
    data = lines(
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}},
        start(0, type="thinking", thinking="h", signature=""),
        {"type": "ping"},
        delta(0, "thinking_delta", thinking="m"),
        delta(0, "signature_delta", signature="x"),
        stop(0),
        start(1, type="redacted_thinking", data="x"),
        stop(1),
        start(2, type="text", text="H"),
        delta(2, "text_delta", text="i"),
        delta(2, "not_yet_invented", text="?"),
        stop(2),
        {"type": "not_yet_invented"},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "late"}},
    )

    pieces, end = read(AnthropicDialect(), data)

    assert pieces == [ThinkingPiece("h"), ThinkingPiece("m"), TextPiece("H"), TextPiece("i")]
    assert end == StreamEnd(EndReason.COMPLETE, "end_turn", {"input_tokens": 9, "output_tokens": 5})


def test_event_stream_framing_is_taken_off() -> None:
    data = b"".join(
        b"event: content_block_delta\r\ndata: " + line + b"\r\n\r\n"
        for line in lines(delta(0, "text_delta", text="a"), {"type": "message_stop"}).splitlines()
    )

    assert read(AnthropicDialect(), data) == ([TextPiece("a")], StreamEnd(EndReason.COMPLETE))


def test_calls_that_overlap_keep_their_ids_also_in_other_hands() -> None:
    data = lines(
        start(1, type="tool_use", id="a", name="f", input={}),
        start(2, type="tool_use", id="b", name="g", input={}),
        arguments(1, ""),
        arguments(2, '{"y'),
        arguments(1, '{"x'),
        stop(1),
        arguments(2, '":2}'),
        arguments(1, "?"),
    )
    expected = [
        ToolPiece({"id": "a", "index": 1, "name": "f", "arguments": ""}),
        ToolPiece({"id": "b", "index": 2, "name": "g", "arguments": ""}),
        ToolPiece({"id": "b", "index": 2, "arguments": '{"y'}),
        ToolPiece({"id": "a", "index": 1, "arguments": '{"x'}),
        ToolPiece({"id": "b", "index": 2, "arguments": '":2}'}),
        ToolPiece({"id": None, "index": 1, "arguments": "?"}),
    ]

    assert read(AnthropicDialect(), data)[0] == expected
    assert read_by_many_hands(DialectName.ANTHROPIC, data, list(range(len(data))))[0] == expected


def test_whole_input_in_the_first_event_is_its_arguments() -> None:
    pieces, _ = read(AnthropicDialect(), lines(start(0, type="tool_use", id="a", name="f", input={"x": "é"})))

    assert pieces == [ToolPiece({"id": "a", "index": 0, "name": "f", "arguments": '{"x":"é"}'})]


def test_arguments_too_long_for_a_message_are_cut() -> None:
    part = '"' * 40_000

    parts = tools_of(
        read(AnthropicDialect(), lines(start(0, type="tool_use", id="a", name="f"), arguments(0, part)))[0]
    )

    assert "".join(data["arguments"] for data in parts) == part
    assert [data["id"] for data in parts] == ["a"] * 6


def test_more_open_calls_than_a_state_holds_lose_but_the_oldest_ids() -> None:
    ids = ["x" * 63 + str(number) for number in range(6)]
    opened = [start(index, type="tool_use", id=call_id, name="f") for index, call_id in enumerate(ids)]
    data = lines(*opened, *(arguments(index, "x") for index in range(6)))

    whole = read(AnthropicDialect(), data)

    assert [tool["id"] for tool in tools_of(whole[0])[6:]] == [None, None, *ids[2:]]
    assert read_by_many_hands(DialectName.ANTHROPIC, data, list(range(0, len(data), 7))) == whole


@pytest.mark.parametrize("call_id", ["x" * 65, "", "é", 7, None])
def test_an_id_that_has_no_room_in_the_state_is_none_from_the_start(call_id: Any) -> None:
    pieces, _ = read(AnthropicDialect(), lines(start(0, type="tool_use", id=call_id, name="f"), arguments(0, "x")))

    assert [tool["id"] for tool in tools_of(pieces)] == [None, None]


def test_the_providers_own_tools_and_citations_are_data_without_what_only_it_can_read() -> None:
    data = lines(
        start(0, type="server_tool_use", id="s", name="web_search", input={}),
        arguments(0, '{"q'),
        stop(0),
        start(1, type="web_search_tool_result", content=[{"url": "https://a.example", "encrypted_content": "x"}]),
        delta(2, "citations_delta", citation={"url": "https://a.example", "encrypted_index": "x"}),
    )

    pieces, _ = read(AnthropicDialect(), data)

    assert pieces == [
        DataPiece({"index": 0, "block": {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}}),
        DataPiece({"index": 0, "id": "s", "input": '{"q'}),
        DataPiece({"index": 1, "block": {"type": "web_search_tool_result", "content": [{"url": "https://a.example"}]}}),
        DataPiece({"index": 2, "citation": {"url": "https://a.example"}}),
    ]


STOPPED = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (lines(STOPPED), StreamEnd(EndReason.COMPLETE, "max_tokens")),
        (lines(STOPPED) + b"junk", StreamEnd(EndReason.COMPLETE, "max_tokens")),
        (lines({"type": "message_stop"}), StreamEnd(EndReason.COMPLETE)),
        (b"data: [DONE]\n", StreamEnd(EndReason.COMPLETE)),
        (
            lines({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            StreamEnd(EndReason.FAILED, problem="line 1 reports an error: Overloaded"),
        ),
        (lines({"type": "error"}), StreamEnd(EndReason.FAILED, problem="line 1 reports an error: no reason given")),
        (
            lines({"type": "error", "message": "gone"}),
            StreamEnd(EndReason.FAILED, problem="line 1 reports an error: gone"),
        ),
        (
            lines({"choices": []}),
            StreamEnd(EndReason.FAILED, problem="line 1 has no type; is it of another dialect?"),
        ),
        (
            lines({"type": "response.created"}),
            StreamEnd(EndReason.FAILED, problem="line 1 is an event of the dialect openai"),
        ),
        (
            lines(delta(0, "text_delta", text=[1])),
            StreamEnd(EndReason.FAILED, problem="line 1 has a text that is no text"),
        ),
        (
            lines({"type": "content_block_start"}),
            StreamEnd(EndReason.FAILED, problem="line 1 has a content_block that is no object"),
        ),
        (
            lines({"type": "ping"}),
            StreamEnd(
                EndReason.INCOMPLETE,
                problem="the stream ended after line 1 with neither a stop_reason nor message_stop",
            ),
        ),
    ],
)
def test_how_a_message_ends(last: bytes, end: StreamEnd) -> None:
    assert read(AnthropicDialect(), last) == ([], end)
