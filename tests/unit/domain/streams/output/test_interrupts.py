"""AG-UI: a run that ends with asks of its own still open has stopped to wait for their answers."""

from typing import Any

import pytest

from gateway.domain.streams.output import OutputFormat, Resume, open_translator
from tests.unit.domain.streams.output.logs import SESSION, Frame, Log, control
from tests.unit.domain.streams.output.readers import events_of

OPTIONS = ["yes", {"value": "no", "label": "No"}]
ASK = {"kind": "ask", "ask": "a1", "run": "r1", "message": "Delete 3 files?", "options": OPTIONS}
START = {"kind": "run_start", "run": "r1"}
RESOLVED = {"kind": "ask_resolved", "ask": "a1", "run": "r1", "status": "answered", "value": "yes"}


def end(reason: str = "complete") -> dict[str, Any]:
    return {"kind": "run_end", "run": "r1", "reason": reason}


def outcome(*frames: Frame, resume: Resume | None = None) -> Any:
    """Of the last event."""
    translator = open_translator(OutputFormat.AG_UI, SESSION, "r1", resume)
    events = [event for frame in frames for event in events_of(translator.take(frame.envelope, frame.cursor))]
    return events[-1].value.get("outcome")


def welcome(head: int) -> Frame:
    return control({"kind": "welcome", "head": head})


def ask_open(**more: Any) -> Frame:
    return control({"kind": "ask_open", "seq": 2, "ask": {**ASK, **more}})


def test_a_live_ask_is_an_interrupt() -> None:
    found = outcome(welcome(0), *Log(START, ASK, end()).frames())

    assert found == {
        "type": "interrupt",
        "interrupts": [
            {
                "id": "a1",
                "reason": "approval",
                "message": "Delete 3 files?",
                "responseSchema": {"enum": ["yes", "no"]},
            }
        ],
    }


def test_an_ask_from_before_the_connection_is_one_while_it_is_open() -> None:
    """`ask_open` says so; an ask of the log alone has been answered since."""
    frames = Log(START, ASK, end()).frames()

    assert outcome(welcome(3), ask_open(), *frames)["type"] == "interrupt"
    assert outcome(welcome(3), *frames) == {"type": "success"}


def test_a_reader_that_comes_back_after_the_ask_knows_of_it() -> None:
    log = Log(START, ASK, end())
    translator = open_translator(OutputFormat.AG_UI, SESSION, "r1")
    got = [event for frame in log.frames()[:2] for event in events_of(translator.take(*frame))]
    resume = Resume.parse(got[-1].id, is_continued=True)

    assert outcome(welcome(3), ask_open(), *log.frames(2), resume=resume)["type"] == "interrupt"


@pytest.mark.parametrize(
    ("payloads", "expected"),
    [
        ([START, ASK, RESOLVED, end()], {"type": "success"}),
        ([START, ASK, end("cancelled")], {"type": "cancelled"}),
        ([START, {**ASK, "run": "r2"}, end()], {"type": "success"}),
        ([START, {"kind": "ask", "ask": "a1", "message": "Of no run?"}, end()], {"type": "success"}),
    ],
)
def test_only_open_asks_of_a_run_that_ended_well_are_interrupts(
    payloads: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    assert outcome(welcome(0), *Log(*payloads).frames()) == expected


def test_members_of_an_ask_are_those_of_an_interrupt() -> None:
    more = {
        "reason": "tool",
        "toolCallId": "c1",
        "expiresAt": "2026-11-30T12:00:00.000Z",
        "metadata": {"n": 1},
        "options": None,
        "responseSchema": {"type": "object"},
    }

    [interrupt] = outcome(welcome(3), ask_open(**more), *Log(START, end()).frames())["interrupts"]

    del more["options"]
    assert interrupt == {"id": "a1", "message": "Delete 3 files?", **more}
