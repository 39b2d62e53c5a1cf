"""Whatever an application pushes, each dialect makes events of it that its library can read."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.streams.output import OutputFormat, open_translator
from gateway.domain.streams.output.ai_sdk import MAX_ARGUMENTS
from tests.unit.domain.streams.output.logs import SESSION, Log
from tests.unit.domain.streams.output.readers import AiSdkReader, events_of, reader_of
from tests.unit.domain.streams.output.test_restart import FORMATS, whole

NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
KINDS = ["delta", "thinking", "code_block", "tool", "data", "ask", "cut", "run_start", "run_end", "own kind"]
FIELDS = st.dictionaries(
    st.sampled_from(["text", "at", "data", "done", "reason", "usage", "finish_reason", "problem", "ask", "model"]), JSON
)
TOOLS = st.fixed_dictionaries(
    {},
    optional={
        "tool_calls": st.lists(st.fixed_dictionaries({"index": JSON, "function": JSON}) | JSON, max_size=3) | JSON,
        "function_call": JSON,
        "name": JSON,
        "arguments": JSON,
        "id": JSON,
        "index": JSON,
        "call_id": JSON,
    },
)


def envelope(kind: str, fields: dict[str, Any], seq: int) -> dict[str, Any]:
    payload = {"kind": kind, "run": "r1", **fields}
    return {"type": "text", "seq": seq, "timestamp": 1, "session_id": SESSION, "payload": payload}


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(KINDS), FIELDS) | st.tuples(st.just("tool"), TOOLS.map(lambda t: {"data": t}))),
    st.sampled_from(FORMATS),
)
def test_any_message_becomes_events_of_the_library(
    messages: list[tuple[str, dict[str, Any]]], output_format: OutputFormat
) -> None:
    """Fields of any type, in frames of every kind."""
    translator = open_translator(output_format, SESSION, "r1")
    reader = reader_of(output_format)

    for seq, (kind, fields) in enumerate([("run_start", {}), *messages, ("run_end", {"reason": "complete"})], 1):
        for event in events_of(translator.take(envelope(kind, fields, seq), f"e.f.{seq}")):
            reader.take(event)

    assert translator.is_over
    assert reader.end


def tool_input(*arguments: str) -> tuple[Any, AiSdkReader]:
    calls = [
        {"kind": "tool", "run": "r1", "data": {"id": "c1", "index": 0, "name": "f", "arguments": part}}
        for part in arguments
    ]
    reader = AiSdkReader()
    end = {"kind": "run_end", "run": "r1", "reason": "complete"}
    for event in whole(OutputFormat.AI_SDK, Log({"kind": "run_start", "run": "r1"}, *calls, end)):
        reader.take(event)
    return reader.inputs["c1"], reader


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"q": 1}', {"q": 1}),
        ("", {}),
        (" ", {}),
        ("[1, 2", "[1, 2"),
        ("NaN", "NaN"),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{"n": 1e999}', '{"n": 1e999}'),
        (r'{"t": "\ud800"}', {"t": "\ufffd"}),
        ("[" * 5_000, "[" * 5_000),
    ],
)
def test_arguments_are_parsed_or_told_as_they_are(arguments: str, expected: Any) -> None:
    """What is no JSON is an input error of the library, and no failure of the stream."""
    assert tool_input(arguments)[0] == expected


@pytest.mark.parametrize("size", [MAX_ARGUMENTS - 1, MAX_ARGUMENTS, MAX_ARGUMENTS + 1])
def test_arguments_have_a_bound(size: int) -> None:
    parts = _in_parts('"' + "x" * (size - 2) + '"')

    found, reader = tool_input(*parts)

    assert found == ("x" * (size - 2) if size <= MAX_ARGUMENTS else None)
    assert reader.end == "stop"


def _in_parts(text: str) -> list[str]:
    return [text[start : start + 60_000] for start in range(0, len(text), 60_000)]
