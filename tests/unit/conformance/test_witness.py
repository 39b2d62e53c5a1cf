"""The judge of conformance: what it must find, and what it must let pass."""

from typing import Any

import pytest

from sdk.conformance.script_log import ScriptLog, Span
from sdk.conformance.witness import Witness, matches

LOG = ScriptLog(
    "s",
    [{"kind": "delta", "run": "r", "text": text} for text in "abc"] + [{"kind": "data", "data": {"n": 1}}],
)


def item(seq: int, text: str = "", kind: str = "delta", **payload: Any) -> dict[str, Any]:
    return {"event": "message", "kind": kind, "seq": seq, "text": text, "payload": {"kind": kind, **payload}}


DATA = item(4, kind="data", data={"n": 1})
WHOLE = [item(1, "a"), item(2, "b"), item(3, "c"), DATA]


async def problems(items: list[dict[str, Any]], gaps: list[Span] | None = None) -> list[str]:
    witness = Witness(lambda _note: None)
    for event in items:
        witness.on_event(event)
    return witness.problems(LOG, Span(1, 4), gaps)


@pytest.mark.parametrize(
    "items",
    [
        WHOLE,
        [item(3, "abc"), DATA],
        [item(1, "a"), item(3, "bc"), DATA],
    ],
)
async def test_the_whole_log_in_any_merging_passes(items: list[dict[str, Any]]) -> None:
    assert await problems(items) == []


@pytest.mark.parametrize(
    ("items", "found"),
    [
        (WHOLE[:3], "messages 4-4 never came"),
        ([WHOLE[0], *WHOLE], "message 1 came after 1"),
        ([WHOLE[1], WHOLE[0], *WHOLE[2:]], "message 1-2 has the text 'b'"),
        ([item(1, "a"), item(3, "c"), DATA], "message 2-3 has the text 'c'"),
        ([item(1, "a"), item(2, "x"), item(3, "c"), DATA], "message 2 has the text 'x'"),
        ([item(1, "a"), item(2, "b"), DATA], "a hole: 3-3 are missing before 4"),
        ([*WHOLE[:3], item(4, kind="data", data={"n": 2})], "message 4 has the payload"),
        ([*WHOLE, item(5, "d")], "message 5 is above 4"),
        ([item(1, "a", kind="code_block"), *WHOLE[1:]], "message 1 is a code_block"),
    ],
)
async def test_whatever_is_not_the_log_is_found(items: list[dict[str, Any]], found: str) -> None:
    assert found in "; ".join(await problems(items))


async def test_what_is_in_a_gap_must_not_come() -> None:
    assert await problems(WHOLE[2:], gaps=[Span(1, 2)]) == []
    assert await problems(WHOLE, gaps=[Span(1, 2)]) != []


@pytest.mark.parametrize(
    ("pattern", "value", "is_match"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": None}, {"b": 2}, True),
        ({"a": "*"}, {"a": None}, False),
        ({"a": {"not": "x"}}, {"a": "y"}, True),
        ({"a": {"not": "x"}}, {"a": "x"}, False),
        ({"a": {"not": "x"}}, {}, False),
        ({"a": {"one_of": ["5", None]}}, {}, True),
        ({"a": {"begins": "ab"}}, {"a": "abc"}, True),
        ([1, 2], [1], False),
        (True, 1, False),
    ],
)
def test_patterns(pattern: Any, value: Any, is_match: bool) -> None:
    assert matches(pattern, value) == is_match
