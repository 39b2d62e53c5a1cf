"""Control frames, and the mark that tells whose a logged frame is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.position import Gap, GapReason
from gateway.domain.wire.cursor import MAX_SEQ, Cursor
from gateway.domain.wire.frames import (
    MARK_AFTER_SEQ,
    belongs,
    control_frame,
    encode_json,
    error_payload,
    forked_payload,
    gap_payload,
    session_mark,
    timestamp_of,
)


def logged(session: str, seq: int = 1, timestamp: int = 1_710_000_000_000, payload: str = '"kind":"data"') -> bytes:
    head = '{"type":"text","seq":%d,"timestamp":%d,"session_id":%s,"payload":{%s}}'
    return (head % (seq, timestamp, json.dumps(session, ensure_ascii=False), payload)).encode()


def test_a_control_frame_has_no_seq() -> None:
    frame = json.loads(control_frame("chat-1", 17, {"kind": "pong"}))

    assert frame == {"type": "control", "timestamp": 17, "session_id": "chat-1", "payload": {"kind": "pong"}}


def test_a_gap_names_runs_only_after_a_fork() -> None:
    cursor = Cursor("e", "f", 9)

    assert gap_payload(Gap(3, 9, GapReason.EVICTED, 9), cursor) == {
        "kind": "gap",
        "first": 3,
        "last": 9,
        "reason": "evicted",
        "cursor": "e.f.9",
    }
    told = gap_payload(Gap(3, 9, GapReason.EPOCH_CHANGED, 2, {"r": 4, "s": 1}, {"r": 2}), cursor)
    assert (told["runs"], told["thinking"]) == ({"r": 4, "s": 1}, {"r": 2})


def test_forked_names_cursor_and_base() -> None:
    assert forked_payload(Cursor("e", "g", 5), 7) == {"kind": "forked", "cursor": "e.g.5", "base": 7}


def test_an_error_says_when_to_come_back_only_when_it_knows() -> None:
    assert "after_ms" not in error_payload("busy", "later", retryable=True)
    assert error_payload("busy", "later", retryable=True, after_ms=50)["after_ms"] == 50


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert encode_json({"id": "a\ud800b"}) == '{"id":"a\ufffdb"}'.encode()


@pytest.mark.parametrize("session", ["s", "chat-42", "\u4f1a\u8bdd", 'a"b\\', "x" * 128])
@pytest.mark.parametrize("seq", [1, MAX_SEQ])
def test_a_frame_belongs_to_the_session_that_it_names(session: str, seq: int) -> None:
    assert belongs(logged(session, seq), session_mark(session))


@pytest.mark.parametrize("seq", [1, 9, 10, MAX_SEQ])
def test_the_hub_finds_the_mark_at_a_glance(seq: int) -> None:
    """Where it looks first; elsewhere every message would be searched."""
    frame = logged("chat-42", seq)

    assert frame.startswith(session_mark("chat-42"), MARK_AFTER_SEQ + len(str(seq)))


@pytest.mark.parametrize("other", ["chat-1", "chat-422", "hat-42", "chat-42 "])
def test_a_frame_of_another_session_does_not_belong(other: str) -> None:
    assert not belongs(logged(other), session_mark("chat-42"))


def test_a_payload_cannot_pose_as_an_envelope() -> None:
    posing = logged("evil", payload='"data":{"x":1,"session_id":"mine","payload":{"kind":"delta"}}')

    assert not belongs(posing, session_mark("mine"))


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_only_equal_ids_belong(session: str, other: str) -> None:
    assert belongs(logged(session), session_mark(other)) == (session == other)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [(logged("s", MAX_SEQ, 1_710_000_000_123), 1_710_000_000_123), (logged("s", 1, 7), 7), (b"{}", None), (b"", None)],
)
def test_the_timestamp_of_a_logged_frame(frame: bytes, expected: int | None) -> None:
    assert timestamp_of(frame) == expected
