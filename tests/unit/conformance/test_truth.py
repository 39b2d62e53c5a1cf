"""The judge of the real faults: what publishers know against what a session was given."""

from typing import Any

import pytest

from sdk.conformance.real.truth import inbox_problems, wrong_with

LOG = {1: {"text": "a"}, 2: {"text": "b"}, 4: {"text": "d"}}
"""Message 3 is an echo: nobody published it."""


def item(seq: int | None, text: str = "", kind: str = "delta") -> dict[str, Any]:
    return {"kind": kind, "seq": seq, "text": text}


ECHO = item(3, kind="echo")


@pytest.mark.parametrize(
    "items", [[item(1, "a"), item(2, "b"), ECHO, item(4, "d")], [item(2, "ab"), ECHO, item(4, "d")]]
)
def test_everything_once_in_any_merging_is_right(items: list[dict[str, Any]]) -> None:
    assert wrong_with(items, LOG, 4) == []


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([item(1, "a"), item(2, "b"), ECHO], "4..4 never came"),
        ([item(1, "a"), item(1, "a"), item(2, "b"), ECHO, item(4, "d")], "1 came after 1"),
        ([item(1, "a"), ECHO, item(4, "d")], "2 is missing before 3"),
        ([item(2, "ab"), item(4, "d")], "[3] are missing before 4"),
        ([item(1, "a"), item(2, "x"), ECHO, item(4, "d")], "2..2 has 'x', not 'b'"),
        ([item(None, kind="gap"), item(1, "a"), item(2, "b"), ECHO, item(4, "d")], "gap after 0"),
    ],
)
def test_what_is_lost_repeated_or_changed_is_found(items: list[dict[str, Any]], found: str) -> None:
    assert found in "; ".join(wrong_with(items, LOG, 4))


def entry(ident: str, by: str, text: str) -> dict[str, Any]:
    return {"id": ident, "timestamp": 1, "kind": "input", "payload": {"by": by, "text": text}}


def test_inputs_are_with_the_agent_once_and_in_order() -> None:
    sent = {"r0": ["x", "y"], "r1": ["z"]}
    items = [entry("1", "r0", "x"), entry("2", "r1", "z"), entry("3", "r0", "y")]

    assert inbox_problems(items, sent) == []
    assert inbox_problems([*items, items[0]], sent) == []  # at least once: the same id is the same item


@pytest.mark.parametrize(
    "items",
    [
        [entry("1", "r0", "x")],
        [entry("1", "r0", "y"), entry("2", "r0", "x")],
        [entry("1", "r0", "x"), entry("2", "r0", "x"), entry("3", "r0", "y")],
    ],
)
def test_an_input_that_is_lost_repeated_or_out_of_order_is_found(items: list[dict[str, Any]]) -> None:
    assert inbox_problems(items, {"r0": ["x", "y"]}) != []
