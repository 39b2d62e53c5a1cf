"""Parts of tool calls find their call, whatever the provider calls and numbers it."""

from typing import Any

import pytest

from gateway.domain.streams.output.place import OpenCall, Place
from gateway.domain.streams.output.tool_calls import (
    MAX_CALLS,
    MAX_NAME_BYTES,
    MAX_OPEN_CALLS,
    CallPart,
    open_call,
    parts_of,
    surplus,
)


def taken(place: Place, *data: dict[str, Any]) -> list[tuple[str, str, str] | None]:
    """(id, name, arguments) of each part's call, with the calls put in their place."""
    found: list[tuple[str, str, str] | None] = []
    for part in (part for one in data for part in parts_of(one)):
        call, is_new = open_call(place, part)
        if call is not None and is_new:
            place.calls.append(call)
            place.call_count += 1
        found.append(None if call is None else (call.id, call.name, part.arguments))
    return found


def openai(**call: Any) -> dict[str, Any]:
    function = {name: call.pop(name) for name in ("name", "arguments") if name in call}
    return {"tool_calls": [{**call, "function": function}]}


def test_chat_completions_name_the_id_only_once() -> None:
    found = taken(Place("r1"), openai(index=0, id="c1", name="f", arguments="{"), openai(index=0, arguments="}"))

    assert found == [("c1", "f", "{"), ("c1", "f", "}")]


def test_calls_that_are_all_number_zero_are_told_apart_by_their_ids() -> None:
    found = taken(Place("r1"), openai(index=0, id="c1", name="f"), openai(index=0, id="c2", name="g"))

    assert found == [("c1", "f", ""), ("c2", "g", "")]


def test_anthropic_numbers_blocks_of_the_message() -> None:
    first = {"id": "toolu_1", "index": 1, "name": "f", "arguments": ""}

    found = taken(Place("r1"), first, {"id": "toolu_1", "index": 1, "arguments": "{}"})

    assert found == [("toolu_1", "f", ""), ("toolu_1", "f", "{}")]


def test_responses_are_answered_by_call_id() -> None:
    """Later parts have only the item's id."""
    first = {"id": "fc_1", "index": 0, "call_id": "call_9", "name": "f", "arguments": ""}

    found = taken(Place("r1"), first, {"id": "fc_1", "index": 0, "arguments": "{}"})

    assert found == [("call_9", "f", ""), ("call_9", "f", "{}")]


def test_a_call_without_id_gets_one() -> None:
    found = taken(Place("r1"), {"name": "f", "arguments": {"q": 1}}, {"name": "g", "arguments": "{}"})

    assert found == [("r1-call-0", "f", '{"q":1}'), ("r1-call-1", "g", "{}")]


def test_a_function_call_of_old() -> None:
    found = taken(
        Place("r1"), {"function_call": {"name": "f", "arguments": "{"}}, {"function_call": {"arguments": "}"}}
    )

    assert found == [("r1-call-0", "f", "{"), ("r1-call-0", "f", "}")]


@pytest.mark.parametrize("data", [None, "x", {}, {"tool_calls": ["x", {"function": 1}]}, {"omitted": "9 bytes"}])
def test_anything_else_has_no_parts(data: Any) -> None:
    assert parts_of(data) == []


def test_a_part_of_an_unknown_call_belongs_to_none() -> None:
    assert taken(Place("r1"), openai(index=3, arguments="{}")) == [None]


@pytest.mark.parametrize(("count", "fits"), [(MAX_CALLS - 1, True), (MAX_CALLS, False), (MAX_CALLS + 1, False)])
def test_a_run_has_so_many_calls(count: int, fits: bool) -> None:
    call, _ = open_call(Place("r1", call_count=count), CallPart(0, "c", "c", "f", ""))

    assert (call is not None) is fits


@pytest.mark.parametrize(("count", "closed"), [(MAX_OPEN_CALLS - 1, 0), (MAX_OPEN_CALLS, 1), (MAX_OPEN_CALLS + 1, 2)])
def test_the_oldest_calls_close_for_one_more(count: int, closed: int) -> None:
    calls = [OpenCall(number, "", f"c{number}", "f", number) for number in range(count)]

    assert list(surplus(Place("r1", calls=calls))) == calls[:closed]


@pytest.mark.parametrize("size", [MAX_NAME_BYTES - 1, MAX_NAME_BYTES, MAX_NAME_BYTES + 1])
def test_long_ids_are_replaced_and_long_names_cut(size: int) -> None:
    [found] = taken(Place("r1"), openai(index=0, id="i" * size, name="n" * size))

    assert found is not None
    assert found[:2] == ("i" * size if size <= MAX_NAME_BYTES else "r1-call-0", "n" * min(size, MAX_NAME_BYTES))
