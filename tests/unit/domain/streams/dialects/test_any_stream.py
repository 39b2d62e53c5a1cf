"""What holds for every dialect and every input: no cut and no change of hands changes anything, and nothing raises."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.dialects.anthropic import Delta, Event
from gateway.domain.streams.dialects.ndjson import Line
from gateway.domain.streams.dialects.openai import Choice, Chunk
from gateway.domain.streams.dialects.openai import Delta as ChatDelta
from gateway.domain.streams.dialects.responses import Response
from gateway.domain.streams.pieces import encode_json
from gateway.domain.wire.payload import make_item
from tests.unit.domain.streams.dialects.reading import cuts_of, read, read_by_many_hands, said

SMALL_USAGE_BYTES = 200
PLACES = st.lists(st.integers(0, 100_000), max_size=12)
TEXTS = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
KINDS = st.sampled_from(
    [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_start",
        "message_delta",
        "error",
        "response.output_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.output_item.added",
        "response.output_item.done",
        "response.refusal.delta",
        "response.completed",
        "text_delta",
        "thinking_delta",
        "input_json_delta",
        "citations_delta",
        "text",
        "thinking",
        "tool_use",
        "server_tool_use",
        "function_call",
        "web_search_call",
    ]
)
MEMBERS = st.sampled_from(
    [
        *Line.__struct_fields__,
        *Chunk.__struct_fields__,
        *Choice.__struct_fields__,
        *ChatDelta.__struct_fields__,
        *Event.__struct_fields__,
        *Delta.__struct_fields__,
        *Response.__struct_fields__,
        "id",
        "input",
        "name",
        "arguments",
        "code",
        "tool_use_id",
    ]
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.dictionaries(MEMBERS, inner, max_size=4)
    return known | st.builds(lambda value, kind: value | {"type": kind}, known, KINDS)


LIKE_CHUNKS = objects(
    st.recursive(SCALARS | VALUES, lambda inner: st.lists(inner, max_size=2) | objects(inner), max_leaves=8)
)


def chat(delta: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": delta}]}


def block_delta(index: int, kind: str, member: str, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}}


GOOD_CHUNKS = {
    DialectName.NDJSON: st.builds(lambda name, text: {name: text}, st.sampled_from(["text", "thinking"]), TEXTS)
    | st.builds(lambda name, data: {name: {"x": data}}, st.sampled_from(["tool", "data"]), VALUES),
    DialectName.OPENAI: st.builds(
        lambda name, text: chat({name: text}), st.sampled_from(["content", "reasoning_content", "refusal"]), TEXTS
    )
    | st.builds(lambda data: chat({"tool_calls": [data]}), VALUES)
    | st.builds(lambda text: {"type": "response.output_text.delta", "delta": text}, TEXTS)
    | st.builds(lambda usage: {"choices": [], "usage": usage}, VALUES),
    DialectName.ANTHROPIC: st.builds(block_delta, st.integers(0, 2), st.just("text_delta"), st.just("text"), TEXTS)
    | st.builds(block_delta, st.integers(0, 6), st.just("input_json_delta"), st.just("partial_json"), TEXTS)
    | st.builds(
        lambda index, kind, call_id: {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": kind, "id": call_id, "name": "f"},
        },
        st.integers(0, 6),
        st.sampled_from(["tool_use", "server_tool_use", "text"]),
        TEXTS | st.just("call"),
    )
    | st.builds(lambda index: {"type": "content_block_stop", "index": index}, st.integers(0, 6)),
}


def as_line(value: Any, how: int) -> bytes:
    line = json.dumps(value, ensure_ascii=bool(how & 1)).encode("utf-8", "surrogatepass")
    return line + (b"\r\n" if how & 2 else b"\n")


JUNK = st.binary(max_size=30) | st.sampled_from(
    [
        b"data: [DONE]\n",
        b"event: error\n",
        b": ping\n",
        b"\n",
        b"\r\n",
        b"data: ",
        b"\xf0\x9f",
        b"\\ud83d",
        b"\xef\xbb\xbf",
    ]
)
ARBITRARY = st.lists(JUNK | st.builds(as_line, LIKE_CHUNKS, st.integers(0, 3)), max_size=12).map(b"".join)


def streams(name: DialectName) -> st.SearchStrategy[bytes]:
    if name is DialectName.TEXT:
        return ARBITRARY
    lines = st.builds(as_line, GOOD_CHUNKS[name], st.integers(0, 3))
    return st.builds(lambda good, tail: b"".join(good) + tail, st.lists(lines, max_size=12), ARBITRARY)


ANY_STREAM = st.sampled_from(list(DialectName)).flatmap(lambda name: st.tuples(st.just(name), streams(name)))


@given(ANY_STREAM, PLACES)
def test_no_cut_changes_anything(stream: tuple[DialectName, bytes], places: list[int]) -> None:
    name, data = stream
    whole, whole_end = read(name, data)

    pieces, end = read(name, *cuts_of(data, places))

    assert said(pieces) == said(whole)
    assert end == whole_end


@given(ANY_STREAM, PLACES)
def test_no_change_of_hands_changes_anything(stream: tuple[DialectName, bytes], places: list[int]) -> None:
    name, data = stream
    whole, whole_end = read(name, data)

    pieces, end = read_by_many_hands(name, data, places)

    assert said(pieces) == said(whole)
    if whole_end.usage is not None and len(encode_json(whole_end.usage)) > SMALL_USAGE_BYTES:
        end, whole_end = replace(end, usage=None), replace(whole_end, usage=None)  # it may have had no room
    assert end == whole_end


@given(ANY_STREAM)
def test_what_is_said_fits_into_messages_and_is_counted(stream: tuple[DialectName, bytes]) -> None:
    name, data = stream
    pieces, end = read(name, data)
    text, thinking, tools, others = said(pieces)

    assert (end.problem is None) is (end.reason == "complete")
    assert end.replaced <= len(data)
    (text + thinking).encode()
    for item in [*tools, *others, end.usage or {}]:
        assert json.loads(encode_json(item)) == item
        make_item({"kind": "tool", "run": "r", "data": item})


@pytest.mark.parametrize("name", list(DialectName))
def test_each_name_opens_its_dialect(name: DialectName) -> None:
    offset, state = open_dialect(name).save()

    assert offset == 0
    assert state.startswith(b"1 " + name.encode())
    assert open_dialect(name, state, 7).save() == (7, state)
