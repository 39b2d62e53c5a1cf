"""SSE events: whatever they carry, a reader sees one event with it and no other (S06, S07)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapters.http.sse_events import NEVER_MS, RelayEvents, event_name, retry_after_close, sse_event
from gateway.domain.wire.close_codes import CLOSE_RULES, Reconnect
from gateway.domain.wire.frames import control_frame, encode_json
from tests.integration.event_source import EventParser

LINE_ENDS = st.sampled_from(
    ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\0"]
)
TEXTS = st.lists(st.one_of(st.text(), LINE_ENDS, st.sampled_from(["data: x", "event: y", "id: 9", ":"]))).map("".join)


def normal(text: str) -> str:
    """As encode_json writes it: a lone surrogate is no text."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(TEXTS)
def test_a_text_is_one_event_with_that_text(text: str) -> None:
    frame = encode_json({"type": "text", "seq": 1, "payload": {"text": text}})
    parser = EventParser()

    (event,) = parser.feed(RelayEvents().text(frame, "e.f.1") + b"\n")

    assert (event.name, event.last_id) == ("message", "e.f.1")
    assert event.json["payload"]["text"] == normal(text)


@given(TEXTS)
def test_a_kind_cannot_be_more_than_a_name(kind: str) -> None:
    """Kinds of state frames come from an application's hooks."""
    frame = control_frame("s", 1, {"kind": kind})
    parser = EventParser()

    (event,) = parser.feed(RelayEvents().control(kind, frame, None) + b"\n")

    assert event.name in (kind, f"relay_{kind}", "relay_control")
    assert event.json["payload"]["kind"] == normal(kind)
    assert parser.retry_ms is None


@given(TEXTS)
def test_a_reason_cannot_make_another_event(reason: str) -> None:
    """Failure catalogue A11, for SSE."""
    (event,) = EventParser().feed(RelayEvents().close(4408, reason, 5) + b"\n")

    assert (event.name, event.json) == ("close", {"code": 4408, "reason": normal(reason)})


@pytest.mark.parametrize("kind", ["error", "open", "message", "close"])
def test_kinds_that_mean_something_else_as_events_get_another_name(kind: str) -> None:
    assert event_name(kind) == f"relay_{kind}"


@pytest.mark.parametrize("code", CLOSE_RULES)
def test_a_final_close_keeps_a_plain_event_source_away(code: int) -> None:
    is_final = CLOSE_RULES[code].reconnect is Reconnect.NO  # type: ignore[index]

    assert retry_after_close(code) == (NEVER_MS if is_final else None)


def test_every_part_of_an_event_has_its_line() -> None:
    assert sse_event(b"{}", event="gap", ident="e.f.1", retry_ms=5) == b"event: gap\nid: e.f.1\nretry: 5\ndata: {}\n\n"


def test_a_comment_is_no_event() -> None:
    """Failure catalogue S08."""
    parser = EventParser()

    assert parser.feed(RelayEvents().begin(5) + RelayEvents().comment() + b"\n") == []
    assert (parser.comments, parser.retry_ms) == (1, 5)


def test_json_has_no_raw_line_end() -> None:
    assert b"\n" not in encode_json({"a": "\n\r\u2028"})
    assert json.loads(encode_json({"a": "\n\r\u2028"})) == {"a": "\n\r\u2028"}
