"""One frame from a gateway, read once: the fields that every reader needs, and the payload as it came."""

from dataclasses import dataclass
from typing import Any

import msgspec


class _Envelope(msgspec.Struct):
    type: str
    payload: dict[str, Any]
    seq: int | None = None
    first_seq: int | None = None
    timestamp: int = 0
    session_id: str = ""


class BadFrame(ValueError):
    """Not an envelope of protocol.md 1."""


@dataclass(frozen=True, slots=True)
class Frame:
    """`raw` is the text as received. `seq` is None on control frames; a merged frame covers first_seq..seq."""

    raw: str
    type: str
    kind: str
    seq: int | None
    first_seq: int | None
    timestamp_ms: int
    payload: dict[str, Any]

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
        return at if isinstance(at, int) else None


_DECODER = msgspec.json.Decoder(_Envelope)


def decode_frame(raw: str) -> Frame:
    """Raises BadFrame. Fields that are not known are ignored, kinds that are not known pass through."""
    try:
        envelope = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeError) as exc:
        raise BadFrame(f"a frame that is no envelope: {exc}") from exc
    kind = envelope.payload.get("kind")
    if not isinstance(kind, str):
        raise BadFrame("a frame whose payload has no kind")
    first = envelope.first_seq if envelope.first_seq is not None else envelope.seq
    return Frame(raw, envelope.type, kind, envelope.seq, first, envelope.timestamp, envelope.payload)


__all__ = ["BadFrame", "Frame", "decode_frame"]
