"""Chat-completion and completion chunks: texts, reasoning under its many names, calls, ends and errors."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.dialects import MAX_LINE_BYTES, OpenAiDialect
from gateway.domain.streams.dialects.sendable import MAX_DATA_BYTES
from gateway.domain.streams.pieces import (
    DataPiece,
    EndReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    encode_json,
)
from tests.unit.domain.streams.dialects.reading import HARD_TO_CUT, cuts_of, lines, read, text_of, thinking_of, tools_of

UNICODE_LINE_BREAKS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def chunk(content: Any = None, **rest: Any) -> bytes:
    choice: dict[str, Any] = {"index": rest.pop("index", 0), "delta": {"content": content, **rest.pop("delta", {})}}
    choice["finish_reason"] = rest.pop("finish_reason", None)
    return json.dumps({"object": "chat.completion.chunk", "choices": [choice], **rest}, ensure_ascii=False).encode()


def call(index: int | None, ident: str | None, arguments: str) -> dict[str, Any]:
    """One entry of `tool_calls`."""
    found = {} if index is None else {"index": index}
    return {**found, **({} if ident is None else {"id": ident}), "function": {"arguments": arguments}}


def test_content_reasoning_and_tool_calls_are_told_apart() -> None:
    calls = [{"index": 0, "id": "", "function": {"arguments": '{"a'}}]
    chunks = [
        chunk("", delta={"role": "assistant"}),
        chunk(delta={"reasoning_content": "hm"}),
        chunk(delta={"reasoning": "m"}),
        chunk("Hi", delta={"reasoning_content": None}),
        chunk(delta={"tool_calls": calls}),
        chunk(finish_reason="tool_calls", usage={"total_tokens": 7}),
    ]

    pieces, end = read(OpenAiDialect(), b"\n".join(chunks))

    assert pieces == [ThinkingPiece("hm"), ThinkingPiece("m"), TextPiece("Hi"), ToolPiece({"tool_calls": calls})]
    assert end == StreamEnd(EndReason.COMPLETE, "tool_calls", {"total_tokens": 7})


@pytest.mark.parametrize(
    "deltas",
    [
        [[call(0, "a", "{"), call(0, None, '"x":')], [call(0, None, "1}")]],
        [[call(0, "a", "{}")], [call(0, "b", "{}")]],
        [[call(0, "a", "{")], [call(0, "", "}")]],
        [[call(None, None, "{}")], [call(1, "b", "{}"), call(0, "a", "{}")]],
    ],
    ids=["one index twice in the first chunk", "one index for two calls", "an empty id", "no index, no order"],
)
def test_tool_calls_are_passed_on_as_they_came(deltas: list[list[dict[str, Any]]]) -> None:
    """Failure catalogue L05: whoever reads them knows the provider; nothing is merged, sorted or mended on the way."""
    pieces, _ = read(OpenAiDialect(), b"\n".join(chunk(delta={"tool_calls": calls}) for calls in deltas))

    assert tools_of(pieces) == [{"tool_calls": calls} for calls in deltas]


def test_reasoning_under_both_names_counts_once() -> None:
    pieces, _ = read(OpenAiDialect(), chunk(delta={"reasoning_content": "hm", "reasoning": "hm"}))

    assert thinking_of(pieces) == "hm"


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"thinking": "hm"},
        {"reasoning_content": "", "reasoning": {"effort": "low"}, "thinking": "hm"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "h", "signature": "x"}, {"thinking": "m"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"summary": "m"}, {"data": "x"}, 7]},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
    ],
)
def test_reasoning_is_found_under_each_name(delta: dict[str, Any]) -> None:
    pieces, _ = read(OpenAiDialect(), chunk("!", delta=delta))

    assert pieces == [ThinkingPiece("hm"), TextPiece("!")]


def test_content_in_parts_is_told_apart_by_their_type() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]},
        {"type": "thinking", "thinking": "!"},
        {"type": "text", "text": "Hi"},
        {"type": "reference", "reference_ids": [1]},
    ]

    pieces, _ = read(OpenAiDialect(), chunk(content))

    assert pieces == [ThinkingPiece("hm!"), TextPiece("Hi")]


def test_refusals_and_annotations_are_data() -> None:
    notes = [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}]

    pieces, _ = read(OpenAiDialect(), chunk(delta={"refusal": "no", "annotations": notes, "images": []}))

    assert pieces == [DataPiece({"refusal": "no", "annotations": notes})]


def test_a_call_too_long_for_a_message_is_cut_into_deltas_that_join_to_it() -> None:
    arguments = json.dumps({"file": "é\x01" * 30_000}, ensure_ascii=False)
    call = {"index": 1, "id": "c", "type": "function", "function": {"name": "write", "arguments": arguments}}
    short = {"index": 2, "id": "d", "type": "function", "function": {"name": "f", "arguments": "{}"}}

    pieces, _ = read(OpenAiDialect(), chunk(delta={"tool_calls": [call, short, 7], "function_call": call["function"]}))

    deltas = [data["tool_calls"][0] for data in tools_of(pieces) if "tool_calls" in data]
    assert deltas[0] | {"function": None} == call | {"function": None}
    assert deltas[-2:] == [short, 7]
    assert {delta["index"] for delta in deltas[:-2]} == {1}
    assert "".join(delta["function"]["arguments"] for delta in deltas[:-2]) == arguments
    assert (
        "".join(data["function_call"]["arguments"] for data in tools_of(pieces) if "function_call" in data) == arguments
    )
    assert max(len(encode_json(data)) for data in tools_of(pieces)) <= MAX_DATA_BYTES


def test_text_completions_carry_text_in_the_choice() -> None:
    line = json.dumps({"object": "text_completion", "choices": [{"index": 0, "text": "Hi", "finish_reason": "length"}]})

    pieces, end = read(OpenAiDialect(), line.encode())

    assert pieces == [TextPiece("Hi")]
    assert end.finish_reason == "length"


@pytest.mark.parametrize("junk", [b"not json", b'{"choices": 1}', b"[1]"])
def test_junk_after_the_finish_is_ignored(junk: bytes) -> None:
    usage = lines({"choices": [], "usage": {"total_tokens": 7}})

    pieces, end = read(OpenAiDialect(), chunk("a", finish_reason="stop") + b"\n" + junk + b"\n" + usage)

    assert pieces == [TextPiece("a")]
    assert end == StreamEnd(EndReason.COMPLETE, "stop", {"total_tokens": 7})


def test_an_error_that_the_provider_reports_counts_until_done() -> None:
    data = chunk("a", finish_reason="error", error={"code": 502, "message": "gone"}) + b"\n"

    assert read(OpenAiDialect(), data)[1].problem == "line 1 reports an error: gone"
    assert read(OpenAiDialect(), b"data: [DONE]\n" + data)[1].problem is None


@pytest.mark.parametrize("index", [0, None, False])
def test_a_choice_without_a_number_is_the_first(index: Any) -> None:
    assert read(OpenAiDialect(), chunk("a", index=index))[0] == [TextPiece("a")]


def test_usage_that_is_none_is_ignored() -> None:
    data = chunk("a", usage={"n": 1}) + b"\n" + chunk("b", usage="x") + b"\n" + chunk("c", usage={"n": 2**60}) + b"\n"

    assert read(OpenAiDialect(), data)[1].usage == {"n": 1}


def test_other_choices_are_left_out() -> None:
    pieces, end = read(OpenAiDialect(), chunk("b", index=1, finish_reason="stop") + b"\n" + chunk("a"))

    assert pieces == [TextPiece("a")]
    assert end.reason is EndReason.INCOMPLETE


def test_event_stream_framing_is_taken_off() -> None:
    data = (
        b"\xef\xbb\xbf: ping\r\n\r\nevent: chunk\r\nid: 7\r\nretry: 10\r\ndata: "
        + chunk("a")
        + b"\r\n\r\n:\r\ndata\r\ndata:"
        + chunk("b")
        + b"  \r\n\r\n"
        + chunk("c")
        + b"\n"
    )

    pieces, _ = read(OpenAiDialect(), data)

    assert text_of(pieces) == "abc"


@pytest.mark.parametrize("done", [b"data: [DONE]", b"data:[DONE]", b"data: [DONE]  \r", b"[DONE]"])
def test_done_is_recognised_in_each_form(done: bytes) -> None:
    """Failure catalogue L06."""
    dialect = OpenAiDialect()
    dialect.feed(chunk("a") + b"\n" + done + b"\n")

    assert dialect.is_over
    assert dialect.close()[1].reason is EndReason.COMPLETE


def test_a_token_that_reads_done_is_text() -> None:
    """Failure catalogue L06."""
    pieces, end = read(OpenAiDialect(), b"data: " + chunk("[DONE]") + b"\n")

    assert pieces == [TextPiece("[DONE]")]
    assert end.reason is EndReason.INCOMPLETE


@pytest.mark.parametrize(
    ("finish_reason", "done", "reason"),
    [
        ("stop", True, EndReason.COMPLETE),
        ("stop", False, EndReason.COMPLETE),
        (None, True, EndReason.COMPLETE),
        (None, False, EndReason.INCOMPLETE),
    ],
)
def test_either_word_of_the_provider_makes_it_complete(
    finish_reason: str | None, done: bool, reason: EndReason
) -> None:
    """Failure catalogue L06."""
    data = chunk("a", finish_reason=finish_reason) + b"\n" + (b"data: [DONE]\n" if done else b"")

    _, end = read(OpenAiDialect(), data)

    assert end.reason is reason
    assert (end.problem is None) is (reason is EndReason.COMPLETE)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"data: {not json", "line 2 is not JSON"),
        (b"plain words", "line 2 is not JSON"),
        (b'{"usage": NaN}', "line 2 is not JSON"),
        (b"[" * 200_000, "line 2 is not JSON"),
        (b"[1]", "line 2 is not a JSON object"),
        (b'{"choices": 1}', "line 2 has an unexpected shape: Expected `array | null`, got `int` - at `$.choices`"),
        (
            b'{"choices": [{"delta": "x"}]}',
            "line 2 has an unexpected shape: Expected `object | null`, got `str` - at `$.choices[0].delta`",
        ),
        (b'{"choices": [{"delta": {"content": 7}}]}', "line 2 has a content that is no text"),
        (b'{"choices": [{"delta": {"content": ["x"]}}]}', "line 2 has a content that is no text"),
        (b'{"choices": [{"delta": {"reasoning_content": {}}}]}', "line 2 has a reasoning_content that is no text"),
        (b'{"choices": [{"finish_reason": true}]}', "line 2 has a finish_reason that is no text"),
        (b'{"type": "content_block_delta"}', "line 2 is an event `content_block_delta` of the dialect anthropic"),
        (b'{"error": {"message": "overloaded"}}', "line 2 reports an error: overloaded"),
        (b'{"error": "overloaded"}', "line 2 reports an error: overloaded"),
        (b'{"object": "error", "message": "overloaded"}', "line 2 reports an error: overloaded"),
        (b"x" * (MAX_LINE_BYTES + 1), f"line 2 is longer than {MAX_LINE_BYTES} bytes"),
    ],
)
def test_a_bad_line_fails_the_run_and_keeps_what_came_before(bad: bytes, problem: str) -> None:
    """Failure catalogue L07."""
    dialect = OpenAiDialect()

    pieces, end = read(dialect, chunk("good") + b"\n" + bad + b"\n" + chunk("late", finish_reason="stop") + b"\n")

    assert pieces == [TextPiece("good")]
    assert (end.reason, end.problem) == (EndReason.FAILED, problem)


@given(
    st.lists(st.text(max_size=12), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
    st.lists(st.integers(0, 100_000), max_size=12),
)
def test_cuts_and_framing_never_change_the_pieces(
    texts: list[str], newline: bytes, with_prefix: bool, places: list[int]
) -> None:
    texts += [HARD_TO_CUT, UNICODE_LINE_BREAKS, "ends with a newline\n"]
    prefix = b"data: " if with_prefix else b""
    data = b"".join(prefix + chunk(text) + newline for text in texts) + b"data: [DONE]"

    pieces, end = read(OpenAiDialect(), *cuts_of(data, places))

    assert pieces == [TextPiece(text) for text in texts if text]
    assert end.reason is EndReason.COMPLETE


def test_every_two_part_cut_gives_the_same_pieces() -> None:
    data = b"data: " + chunk(HARD_TO_CUT) + b"\r\n\r\ndata:" + chunk("b", finish_reason="stop") + b"\r\n"
    whole = read(OpenAiDialect(), data)

    assert all(read(OpenAiDialect(), data[:place], data[place:]) == whole for place in range(len(data) + 1))


def test_a_whole_answer_is_no_stream() -> None:
    """A forgotten `stream: true` must not end as an empty, complete run."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}
    answer = json.dumps({"object": "chat.completion", "choices": [choice]}).encode()

    pieces, end = read(OpenAiDialect(), answer)

    assert not pieces
    assert end.reason is EndReason.FAILED
    assert "stream: true" in (end.problem or "")
