"""JSON text frames that the gateway itself makes, and the mark by which a logged frame names its session.

Frames of the log are finished bytes; they are looked at here, never parsed or rebuilt.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from gateway.domain.sessions.position import Gap
from gateway.domain.wire.cursor import Cursor

_BEFORE_TIMESTAMP: Final = len('{"type":"text","seq":,"timestamp":')
_MAX_PREFIX: Final = _BEFORE_TIMESTAMP + 2 * 16
"""seq and timestamp stay below 2^53: at most 16 digits each."""
MARK_AFTER_SEQ: Final = _BEFORE_TIMESTAMP + 13
"""Where the mark is, plus the digits of the seq, while timestamps have 13 digits (until 2286): a look, no search."""
_encode = msgspec.json.Encoder().encode
_encode_any_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encode_json(value: Any) -> bytes:
    """Compact UTF-8. What cannot be UTF-8 (a lone surrogate) becomes U+FFFD (A12)."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_any_text(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def control_frame(session_id: str, timestamp_ms: int, payload: Mapping[str, Any]) -> bytes:
    """A control envelope; `payload` begins with its `kind`. It has no seq."""
    return encode_json({"type": "control", "timestamp": timestamp_ms, "session_id": session_id, "payload": payload})


def gap_payload(gap: Gap, cursor: Cursor) -> dict[str, Any]:
    """`cursor` is the position after the gap, on the log's line."""
    payload = {"kind": "gap", "first": gap.first, "last": gap.last, "reason": gap.reason, "cursor": str(cursor)}
    if gap.runs is not None:
        payload["runs"] = dict(gap.runs)
        payload["thinking"] = dict(gap.thinking)
    return payload


def forked_payload(cursor: Cursor, base: int) -> dict[str, Any]:
    """Before the first frame of a new fork. `cursor` is the client's position on it, `base` the fork's first one."""
    return {"kind": "forked", "cursor": str(cursor), "base": base}


def error_payload(code: str, message: str, *, retryable: bool, after_ms: int | None = None) -> dict[str, Any]:
    payload: dict[str, Any] = {"kind": "error", "code": code, "message": message, "retryable": retryable}
    if after_ms is not None:
        payload["after_ms"] = after_ms
    return payload


@lru_cache(maxsize=4096)
def payload_head(session_id: str) -> bytes:
    """What every logged frame of this session has between its timestamp and its payload."""
    return b',"session_id":' + encode_json(session_id) + b',"payload":'


def session_mark(session_id: str) -> bytes:
    """The same with the payload's first byte: frames are recognised by it."""
    return payload_head(session_id) + b"{"


def belongs(frame: bytes, mark: bytes) -> bool:
    """G11: the frame's own envelope names the session whose mark this is. Cheap enough for every frame."""
    return frame.find(mark, _BEFORE_TIMESTAMP, _MAX_PREFIX + len(mark)) > 0


def timestamp_of(frame: bytes) -> int | None:
    """Unix ms of a logged frame's envelope; None when it has no such envelope."""
    start = frame.find(b',"timestamp":', 0, _MAX_PREFIX)
    if start < 0:
        return None
    digits = frame[start + 13 : start + 29].partition(b",")[0]
    return int(digits) if digits.isdigit() else None


__all__ = [
    "MARK_AFTER_SEQ",
    "belongs",
    "control_frame",
    "encode_json",
    "error_payload",
    "forked_payload",
    "gap_payload",
    "payload_head",
    "session_mark",
    "timestamp_of",
]
