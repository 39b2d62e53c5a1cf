"""Frames as a gateway writes them, for the tests of this folder."""

import hashlib
import json
from typing import Any

from relayrouter.messages import Frame, decode_frame

LINE = "e1.f1"


def message(seq: int, payload: dict[str, Any], *, first_seq: int | None = None) -> str:
    envelope: dict[str, Any] = {"type": "text", "seq": seq, "timestamp": 1, "session_id": "s", "payload": payload}
    if first_seq is not None:
        envelope["first_seq"] = first_seq
    return json.dumps(envelope, ensure_ascii=False)


def delta(seq: int, text: str, at: int | None = None, *, run: str = "r", first_seq: int | None = None) -> str:
    payload: dict[str, Any] = {"kind": "delta", "run": run, "text": text}
    if at is not None:
        payload["at"] = at
    return message(seq, payload, first_seq=first_seq)


def start(seq: int, run: str = "r") -> str:
    return message(seq, {"kind": "run_start", "run": run})


def sums(text: str) -> dict[str, Any]:
    data = text.encode()
    return {"bytes": len(data), "code_points": len(text), "sha256": hashlib.sha256(data).hexdigest()}


def end(seq: int, text: str, *, run: str = "r", reasoning: str | None = None) -> str:
    payload: dict[str, Any] = {"kind": "run_end", "run": run, "reason": "complete", **sums(text)}
    if reasoning is not None:
        payload["reasoning"] = sums(reasoning)
    return message(seq, payload)


def control(kind: str, **payload: Any) -> str:
    return json.dumps({"type": "control", "timestamp": 1, "session_id": "s", "payload": {"kind": kind, **payload}})


def welcome(seq: int = 0, line: str = LINE, **payload: Any) -> str:
    fields = {"cursor": f"{line}.{seq}", "connection": "c1", "gateway": "g1", "resumed": "fresh", "heartbeat": 20.0}
    return control("welcome", **fields | payload)


def gap(first: int, last: int, reason: str, cursor: str, **payload: Any) -> str:
    return control("gap", first=first, last=last, reason=reason, cursor=cursor, **payload)


def frame(raw: str) -> Frame:
    return decode_frame(raw)
