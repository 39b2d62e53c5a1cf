"""What came (`Frame`, as received) and what the application is handed (`Message`)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from relayrouter.cursor import MAX_SEQ
from relayrouter.errors import ProtocolError

TEXT_KINDS = frozenset(("delta", "code_block", "thinking"))
"""Kinds whose `text` is part of a run's text or reasoning."""
POSITION_KINDS = frozenset(("welcome", "gap", "forked", "snapshot"))
"""Control kinds that may name a position."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One envelope. `seq` is None on control frames; a merged frame covers first_seq..seq."""

    type: str
    kind: str
    seq: int | None
    first_seq: int | None
    timestamp_ms: int
    payload: dict[str, Any]
    size_bytes: int

    @property
    def is_control(self) -> bool:
        return self.type == "control"

    @property
    def run(self) -> str | None:
        run = self.payload.get("run")
        return run if isinstance(run, str) else None

    @property
    def text(self) -> str:
        text = self.payload.get("text")
        return text if isinstance(text, str) else ""

    @property
    def at(self) -> int | None:
        at = self.payload.get("at")
        return at if isinstance(at, int) and not isinstance(at, bool) else None


@dataclass(frozen=True, slots=True)
class Message:
    """One step of the session, in order.

    `text`: the part of it that was new. `seq` is None for `gap` and `snapshot`, which stand where they happened.
    """

    kind: str
    seq: int | None
    first_seq: int | None
    timestamp: int
    """Unix ms, given by the server."""
    run: str | None
    text: str
    payload: dict[str, Any]
    late: bool = False
    """It came after its place in the producer's order was given up."""


def decode_frame(raw: str | bytes) -> Frame:
    """Raises ProtocolError: retryable for what no gateway wrote, final for numbers that JSON cannot be trusted with.

    Unknown fields are ignored, unknown kinds pass through.
    """
    return read_frame(_json(raw), _size_bytes(raw))


def decode_frames(raw: str | bytes) -> Iterator[Frame]:
    """The same where several envelopes may come in one array (`batch=1`): each is judged when it is its turn, so what
    stands before a bad one counts. Their sizes are equal parts of the whole.
    """
    value = _json(raw)
    envelopes = value if isinstance(value, list) else [value]
    size_bytes = _size_bytes(raw) // max(1, len(envelopes))
    for envelope in envelopes:
        yield read_frame(envelope, size_bytes)


def _json(raw: str | bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as exc:
        raise ProtocolError("a frame that is no JSON", retryable=True) from exc


def _size_bytes(raw: str | bytes) -> int:
    return len(raw.encode()) if isinstance(raw, str) else len(raw)


def read_frame(value: Any, size_bytes: int) -> Frame:
    """Of an envelope that was decoded already. Raises ProtocolError."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ProtocolError("a frame that is no envelope", retryable=True)
    payload = value.get("payload")
    if not isinstance(payload, dict) or not isinstance(payload.get("kind"), str):
        raise ProtocolError("a frame whose payload has no kind", retryable=True)
    seq = _count(value, "seq")
    first_seq = _count(value, "first_seq")
    _count(payload, "at", is_strict=False)
    if first_seq is None:
        first_seq = seq
    if seq is not None and first_seq is not None and first_seq > seq:
        raise ProtocolError("a frame whose first_seq is above its seq", retryable=True)
    timestamp = _count(value, "timestamp") or 0
    return Frame(value["type"], payload["kind"], seq, first_seq, timestamp, payload, size_bytes)


def _count(fields: dict[str, Any], name: str, *, is_strict: bool = True) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        if not is_strict:
            return None
        raise ProtocolError(f"`{name}` is no count", retryable=True)
    if value > MAX_SEQ:
        raise ProtocolError(f"`{name}` is above 2^53 - 1")
    return value


__all__ = ["POSITION_KINDS", "TEXT_KINDS", "Frame", "Message", "decode_frame", "decode_frames", "read_frame"]
