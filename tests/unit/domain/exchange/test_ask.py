"""What an ask may be, the frame it becomes, and what counts as its answer."""

import json
from typing import Any

import pytest

from gateway.domain.exchange.ask import (
    MAX_MESSAGE_BYTES,
    MAX_OPTIONS,
    MAX_SCHEMA_BYTES,
    MAX_WHO,
    AskRecord,
    AskSpec,
    Who,
    decode_record,
    problem_of_answer,
)
from gateway.domain.wire.errors import ErrorCode, RelayError

LABELLED = [{"value": "yes", "label": "Ja"}, "no"]


def test_the_frame_has_what_was_given_and_the_record_is_read_back() -> None:
    record = AskRecord(options=["yes", "no"], who=Who(users=["ann"]), run="r7", traceparent="00-x")
    spec = AskSpec("a1", "Delete 3 files?", record, "approval", "call-1", {"files": 3})

    body = json.loads(spec.item(65_536).body + b"}")

    assert body == {
        "kind": "ask",
        "ask": "a1",
        "run": "r7",
        "reason": "approval",
        "message": "Delete 3 files?",
        "options": ["yes", "no"],
        "toolCallId": "call-1",
        "metadata": {"files": 3},
        "who": {"users": ["ann"]},
    }
    assert record == decode_record(spec.encoded_record())


def test_what_was_not_given_is_not_in_the_frame() -> None:
    body = json.loads(AskSpec("a1", "Well?", AskRecord()).item(65_536).body + b"}")

    assert {"kind": "ask", "ask": "a1", "message": "Well?"} == body


@pytest.mark.parametrize(
    ("value", "is_one"), [("yes", True), ("no", True), ("Ja", False), ("YES", False), (["yes"], False), (None, False)]
)
def test_an_answer_is_one_of_the_options_by_value(value: Any, is_one: bool) -> None:
    assert is_one == (problem_of_answer(AskRecord(options=LABELLED), value) is None)


@pytest.mark.parametrize(
    "record",
    [
        AskRecord(options=[]),
        AskRecord(options=["x"] * (MAX_OPTIONS + 1)),
        AskRecord(options=[1]),
        AskRecord(options=["a", "b", "a"]),
        AskRecord(options=["a", {"value": "a", "label": "Another"}]),
        AskRecord(options=[{"label": "no value"}]),
        AskRecord(options=[{"value": "v", "more": 1}]),
        AskRecord(options=["a"], schema={}),
        AskRecord(schema={"pattern": "x"}),
        AskRecord(schema={"description": "x" * MAX_SCHEMA_BYTES}),
        AskRecord(run="\x00"),
        AskRecord(who=Who(users=["u"] * (MAX_WHO + 1))),
        AskRecord(who=Who(clients=[""])),
        AskRecord(who=Who(users=[])),
        AskRecord(who=Who(users=["ann"], clients=[])),
    ],
)
def test_a_record_out_of_its_limits_is_refused(record: AskRecord) -> None:
    with pytest.raises(RelayError) as refused:
        AskSpec("a1", "Well?", record)

    assert ErrorCode.BAD_REQUEST is refused.value.code


@pytest.mark.parametrize(
    ("ask", "message", "is_good"),
    [
        ("a1", "x" * MAX_MESSAGE_BYTES, True),
        ("a1", "x" * (MAX_MESSAGE_BYTES + 1), False),
        ("a1", "", False),
        ("a" * 128, "?", True),
        ("a" * 129, "?", False),
        ("a\nb", "?", False),
    ],
)
def test_the_id_and_the_message_are_bounded(ask: str, message: str, is_good: bool) -> None:
    if is_good:
        AskSpec(ask, message, AskRecord())
        return
    with pytest.raises(RelayError):
        AskSpec(ask, message, AskRecord())


def test_the_most_options_are_taken() -> None:
    AskSpec("a1", "?", AskRecord(options=[str(number) for number in range(MAX_OPTIONS)]))
