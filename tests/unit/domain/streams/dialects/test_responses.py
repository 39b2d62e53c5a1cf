"""Events of the Responses API: only deltas count; calls, the provider's own tools, and how a response ends."""

from typing import Any

import pytest

from gateway.domain.streams.dialects import OpenAiDialect
from gateway.domain.streams.pieces import DataPiece, EndReason, StreamEnd, TextPiece, ThinkingPiece, ToolPiece
from tests.unit.domain.streams.dialects.reading import lines, read, tools_of


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "sequence_number": 1} | members


COMPLETED = event("response.completed", response={"status": "completed", "usage": {"output_tokens": 3}, "output": [{}]})


def test_texts_come_from_deltas_and_are_not_taken_twice() -> None:
    data = lines(
        event("response.created", response={"status": "in_progress", "usage": None, "error": None}),
        event("response.output_item.added", item={"type": "reasoning", "id": "rs", "summary": []}),
        event("response.reasoning_summary_text.delta", delta="h"),
        event("response.reasoning_text.delta", delta="m"),
        event("response.reasoning_summary_text.done", text="hm"),
        event("response.output_item.added", item={"type": "message", "id": "msg", "content": []}),
        event("response.output_text.delta", delta="Hi"),
        event("response.output_text.done", text="Hi"),
        event("response.output_item.done", item={"type": "message", "content": [{"text": "Hi"}]}),
        event("response.not_yet_invented", delta={"x": 1}),
        COMPLETED,
    )

    late = lines(event("response.output_text.delta", delta="late"))
    pieces, end = read(OpenAiDialect(), data + late + b"junk\n")

    assert pieces == [ThinkingPiece("h"), ThinkingPiece("m"), TextPiece("Hi")]
    assert end == StreamEnd(EndReason.COMPLETE, "completed", {"output_tokens": 3})


@pytest.mark.parametrize(
    ("kind", "member", "deltas"),
    [
        ("function_call", "arguments", "response.function_call_arguments.delta"),
        ("custom_tool_call", "input", "response.custom_tool_call_input.delta"),
    ],
)
def test_a_call_is_named_once_and_its_arguments_come_in_parts(kind: str, member: str, deltas: str) -> None:
    item = {"type": kind, "id": "fc_1", "call_id": "call_1", "name": "f"}
    data = lines(
        event("response.output_item.added", output_index=1, item=item | {member: ""}),
        event(deltas, output_index=1, item_id="fc_1", delta='{"a'),
        event(deltas, output_index=1, item_id="fc_1", delta='":1}'),
        event("response.output_item.done", output_index=1, item=item | {member: '{"a":1}'}),
    )

    pieces, _ = read(OpenAiDialect(), data)

    assert pieces == [
        ToolPiece({"id": "fc_1", "index": 1, "call_id": "call_1", "name": "f", "arguments": ""}),
        ToolPiece({"id": "fc_1", "index": 1, "arguments": '{"a'}),
        ToolPiece({"id": "fc_1", "index": 1, "arguments": '":1}'}),
    ]


def test_arguments_too_long_for_a_message_are_cut() -> None:
    arguments = "é" * 20_000

    pieces, _ = read(
        OpenAiDialect(),
        lines(event("response.function_call_arguments.delta", output_index=2, item_id="fc", delta=arguments)),
    )

    parts = tools_of(pieces)
    assert "".join(part.pop("arguments") for part in parts) == arguments
    assert parts == [{"id": "fc", "index": 2}] * 5


def test_the_providers_own_tools_citations_and_refusals_are_data() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed", "encrypted_content": "x"}
    note = {"type": "url_citation", "url": "https://a.example", "start_index": 3}
    data = lines(
        event("response.output_item.done", output_index=1, item=search),
        event("response.output_text.annotation.added", output_index=2, annotation=note),
        event("response.refusal.delta", output_index=2, delta="no"),
    )

    pieces, _ = read(OpenAiDialect(), data)

    assert pieces == [
        DataPiece({"index": 1, "item": {"type": "web_search_call", "id": "ws", "status": "completed"}}),
        DataPiece({"index": 2, "annotation": note}),
        DataPiece({"index": 2, "refusal": "no"}),
    ]


@pytest.mark.parametrize(
    ("last", "end"),
    [
        (
            event("response.incomplete", response={"incomplete_details": {"reason": "max_output_tokens"}}),
            StreamEnd(EndReason.COMPLETE, "max_output_tokens"),
        ),
        (event("response.incomplete", response={}), StreamEnd(EndReason.COMPLETE, "incomplete")),
        (event("response.cancelled"), StreamEnd(EndReason.COMPLETE, "cancelled")),
        (
            event("response.failed", response={"error": {"code": "server_error", "message": "gone"}}),
            StreamEnd(EndReason.FAILED, problem="line 1 reports an error: gone"),
        ),
        (event("response.failed"), StreamEnd(EndReason.FAILED, problem="line 1 reports an error: no reason given")),
        (
            event("error", code="rate_limit", message="slow down"),
            StreamEnd(EndReason.FAILED, problem="line 1 reports an error: slow down"),
        ),
        (
            event("error", error={"message": "gone"}),
            StreamEnd(EndReason.FAILED, problem="line 1 reports an error: gone"),
        ),
        (
            event("response.output_text.delta", delta=1),
            StreamEnd(EndReason.FAILED, problem="line 1 has a delta that is no text"),
        ),
        (
            event("response.output_item.added"),
            StreamEnd(EndReason.FAILED, problem="line 1 has an item that is no object"),
        ),
        (
            event("response.in_progress", response={}),
            StreamEnd(
                EndReason.INCOMPLETE,
                problem="the stream ended after line 1 with neither a finish_reason nor [DONE]",
            ),
        ),
    ],
)
def test_how_a_response_ends(last: dict[str, Any], end: StreamEnd) -> None:
    assert read(OpenAiDialect(), lines(last)) == ([], end)
