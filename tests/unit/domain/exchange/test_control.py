"""What clients send is read once, and refused with what is wrong (A20)."""

import json
from typing import Any

import pytest

from gateway.domain.exchange.control import (
    MAX_REASON_CHARS,
    AnswerTo,
    Cancel,
    Interrupt,
    Pause,
    Resume,
    echo_of,
    read_control,
    read_input,
)
from gateway.domain.wire.errors import ErrorCode, RelayError


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("interrupt", {"run": "r7", "seen": {"seq": 118, "at": 512}}, Interrupt("r7", 118, 512)),  # type: ignore[arg-type]
        ("interrupt", {"run": "r7"}, Interrupt("r7")),  # type: ignore[arg-type]
        ("interrupt", {"run": "r7", "seen": {"seq": 0, "at": 0}, "more": 1}, Interrupt("r7", 0, 0)),  # type: ignore[arg-type]
        ("pause", {}, Pause()),
        ("resume", {}, Resume()),
        ("cancel", {"run": "r7", "reason": "n" * MAX_REASON_CHARS}, Cancel("r7", "n" * MAX_REASON_CHARS)),  # type: ignore[arg-type]
        ("answer", {"ask": "a1", "value": None}, AnswerTo("a1", None)),
    ],
)
def test_what_is_asked_for(kind: str, fields: dict[str, Any], expected: object) -> None:
    assert read_control(kind, fields) == expected


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("interrupt", {}, "`run` is required"),
        ("interrupt", {"run": ""}, "`run` must have 1 to 128 bytes"),
        ("interrupt", {"run": "r" * 129}, "`run` must have 1 to 128 bytes"),
        ("interrupt", {"run": 7}, "`run` is required"),
        ("interrupt", {"run": "r", "seen": 4}, "`seen` must be"),
        ("interrupt", {"run": "r", "seen": {"seq": 1}}, "`seen` must be"),
        ("interrupt", {"run": "r", "seen": {"seq": -1, "at": 0}}, "`seen` must be"),
        ("interrupt", {"run": "r", "seen": {"seq": True, "at": 0}}, "`seen` must be"),
        ("interrupt", {"run": "r", "seen": {"seq": 2**53, "at": 0}}, "`seen` must be"),
        ("cancel", {"run": "r", "reason": "n" * (MAX_REASON_CHARS + 1)}, "`reason` must be"),
        ("answer", {"ask": "a"}, "`value` of an answer is missing"),
        ("answer", {"value": 1}, "`ask` is required"),
    ],
)
def test_what_is_wrong_is_named(kind: str, fields: dict[str, Any], text: str) -> None:
    with pytest.raises(RelayError, match=text) as caught:
        read_control(kind, fields)
    assert caught.value.code is ErrorCode.BAD_REQUEST


def test_an_input_is_canonical_and_its_digest_knows_no_order() -> None:
    first = read_input(3, {"text": "ä", "n": {"b": 1, "a": 2}}, "c1", "u1", 1_000)
    second = read_input(3, {"n": {"a": 2, "b": 1}, "text": "ä"}, "c1", "u1", 1_000)

    echo = json.loads(first.echo_body + b"}")
    assert first.digest == second.digest
    assert echo == {
        "kind": "echo",
        "client": "c1",
        "user": "u1",
        "input_seq": 3,
        "payload": {"text": "ä", "n": {"b": 1, "a": 2}},
    }
    assert read_input(3, {"text": "a"}, "c1", "u1", 1_000).digest != first.digest


@pytest.mark.parametrize(("size", "is_refused"), [(99, False), (100, False), (101, True)])
def test_the_limit_of_an_input(size: int, is_refused: bool) -> None:
    payload = {"t": "x" * (size - len('{"t":""}'))}
    if not is_refused:
        assert read_input(1, payload, "c", "u", 100).payload == payload
        return
    with pytest.raises(RelayError) as caught:
        read_input(1, payload, "c", "u", 100)
    assert (caught.value.code, caught.value.details) == (ErrorCode.TOO_LARGE, {"limit_bytes": 100})


@pytest.mark.parametrize("number", [0, -1, None, "1", 1.0, True, 2**53])
def test_an_input_needs_its_number(number: Any) -> None:
    with pytest.raises(RelayError, match="`seq` must be"):
        read_input(number, {}, "c", "u", 100)


@pytest.mark.parametrize("payload", [{"n": 2**53}, {"a": [[[[[0]]]]]}, {"x": "\ud800"}])
def test_an_input_is_json_that_every_client_reads_alike(payload: dict[str, Any]) -> None:
    if "n" in payload:
        with pytest.raises(RelayError, match="beyond 2\\^53"):
            read_input(1, payload, "c", "u", 100)
        return
    assert b"\xed" not in read_input(1, payload, "c", "u", 100).echo_body


def test_only_small_values_are_echoed() -> None:
    assert echo_of({"id": "x" * 128, "t": 5}) == {"id": "x" * 128, "t": 5}
    assert echo_of({"id": "x" * 129, "t": [1]}) == {}
