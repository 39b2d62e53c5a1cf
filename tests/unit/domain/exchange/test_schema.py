"""The subset of JSON Schema for answers: what it means, what it refuses, and that it is bounded."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.exchange.schema import MAX_DEPTH, MAX_ENUM, MAX_NODES, check_schema, is_same, problem_of
from gateway.domain.wire.errors import ErrorCode, RelayError

FORM = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["approve", "reject"]},
        "amount": {"type": "number", "minimum": 0, "exclusiveMaximum": 100},
        "notes": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 3}, "maxItems": 2},
    },
    "required": ["decision"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"decision": "approve"}, None),
        ({"decision": "approve", "amount": 0, "notes": ["a", "abc"]}, None),
        ({"decision": "approve", "amount": 99.9}, None),
        ([], "the answer must be of type object"),
        ({}, "/decision is missing"),
        ({"decision": "maybe"}, "/decision must be one of the values that are listed"),
        ({"decision": "approve", "amount": -0.1}, "/amount must be at least 0"),
        ({"decision": "approve", "amount": 100}, "/amount must be below 100"),
        ({"decision": "approve", "amount": True}, "/amount must be of type number"),
        ({"decision": "approve", "notes": [""]}, "/notes/0 must have at least 1 characters"),
        ({"decision": "approve", "notes": ["a", "abcd"]}, "/notes/1 must have at most 3 characters"),
        ({"decision": "approve", "notes": ["a", "b", "c"]}, "/notes must have at most 2 items"),
        ({"decision": "approve", "more": 1}, "/more is not allowed"),
    ],
)
def test_an_answer_fits_or_the_place_is_named(value: Any, problem: str | None) -> None:
    check_schema(FORM)

    assert problem == problem_of(FORM, value)


@pytest.mark.parametrize(
    ("schema", "fits", "others"),
    [
        ({"type": "integer"}, [0, -3, 2.0], [2.5, True, "2", None]),
        ({"type": "number"}, [0, 2.5], [False, "2"]),
        ({"type": "boolean"}, [True, False], [0, 1, "true"]),
        ({"type": "null"}, [None], [0, "", []]),
        ({"type": ["string", "null"]}, ["", None], [0, {}]),
        ({"const": 1}, [1, 1.0], [True, "1", [1]]),
        ({"enum": [False, {"a": [1]}]}, [False, {"a": [1]}, {"a": [1.0]}], [0, {"a": [True]}, {"a": [1], "b": 2}]),
        ({"minimum": 3, "maximum": 4}, [3, 4, "not a number"], [2, 5]),
        ({"exclusiveMinimum": 3}, [4], [3]),
        ({"minItems": 1}, [[0], "not a list"], [[]]),
        ({"additionalProperties": {"type": "string"}}, [{"a": "b"}, {}], [{"a": 1}]),
        ({}, [None, 1, {"a": [True]}], []),
    ],
)
def test_what_the_keywords_mean(schema: dict[str, Any], fits: list[Any], others: list[Any]) -> None:
    check_schema(schema)

    assert [] == [value for value in fits if problem_of(schema, value) is not None]
    assert [] == [value for value in others if problem_of(schema, value) is None]


@pytest.mark.parametrize(
    "schema",
    [
        [],
        "string",
        {"type": "text"},
        {"type": []},
        {"type": [["string"]]},
        {"pattern": "(a+)+$"},
        {"$ref": "#"},
        {"anyOf": [{}]},
        {"enum": []},
        {"enum": list(range(MAX_ENUM + 1))},
        {"properties": []},
        {"properties": {"a": True}},
        {"items": [{}]},
        {"additionalProperties": "no"},
        {"required": "a"},
        {"required": [1]},
        {"minLength": -1},
        {"minLength": True},
        {"maxItems": 1.5},
        {"minimum": "0"},
        {"properties": {"a": {"items": {"unknown": 1}}}},
    ],
)
def test_what_is_outside_of_the_subset_is_refused(schema: Any) -> None:
    with pytest.raises(RelayError) as refused:
        check_schema(schema)

    assert ErrorCode.BAD_REQUEST is refused.value.code


def nested(levels: int) -> dict[str, Any]:
    return {} if levels == 1 else {"items": nested(levels - 1)}


def test_the_depth_and_the_size_of_a_schema_are_bounded() -> None:
    check_schema(nested(MAX_DEPTH))
    check_schema({"properties": {str(number): {} for number in range(MAX_NODES - 1)}})

    for schema in (nested(MAX_DEPTH + 1), {"properties": {str(number): {} for number in range(MAX_NODES)}}):
        with pytest.raises(RelayError):
            check_schema(schema)


def test_a_large_answer_is_judged_in_linear_time() -> None:
    schema = {"items": {"enum": [f"option {number}" for number in range(MAX_ENUM)]}}
    began = time.process_time()

    assert problem_of(schema, [f"option {MAX_ENUM - 1}"] * 2_000) is None
    assert time.process_time() - began < 1


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_json)
def test_a_value_is_the_same_as_itself_and_fits_its_own_constant(value: Any) -> None:
    assert is_same(value, value)
    assert problem_of({"const": value}, value) is None


@given(_json, _json)
def test_sameness_is_symmetric_and_never_mixes_booleans_with_numbers(left: Any, right: Any) -> None:
    assert is_same(left, right) == is_same(right, left)
    assert not is_same(left, right) or (isinstance(left, bool) == isinstance(right, bool))
