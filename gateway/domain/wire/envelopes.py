"""What links that are no WebSocket need to know of an envelope: its kind, and the position that it puts the client at.

Text is never parsed: the gateway wrote its beginning itself. Control frames are few and small.
"""

from typing import Final, NamedTuple

import msgspec

from gateway.domain.wire.cursor import Line

_TEXT: Final = b'{"type":"text",'
_FIRST_SEQ: Final = b'"first_seq":'
_SEQ: Final = b'"seq":'
_MAX_DIGITS: Final = 16
_MOVING: Final = frozenset({"welcome", "gap", "forked", "snapshot"})
"""Control kinds whose `cursor` is the client's position. Others may have a field of that name: hooks make frames."""


class Envelope(NamedTuple):
    """One frame. `kind` is that of a control frame, empty for text."""

    data: bytes
    kind: str
    cursor: str | None
    """The client's position once it has this frame; None: the frame does not move it."""
    messages: int
    """How many messages of the log it stands for: 0 for control, more than 1 for a merged frame."""
    is_part: bool = False
    """A snapshot that others follow: the position stays below them."""


class _Payload(msgspec.Struct):
    kind: str = ""
    cursor: str | None = None
    resumed: str = ""


class _Control(msgspec.Struct):
    payload: _Payload


_decode = msgspec.json.Decoder(_Control).decode


class Envelopes:
    """Reads the frames of one connection in their order: text names a seq only, its line was named before it."""

    __slots__ = ("_line",)

    def __init__(self) -> None:
        self._line = ""

    def read(self, data: bytes) -> Envelope:
        """`data`: JSON as the gateway writes it. Returned without raw line ends, whatever a hook made of it."""
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\r", b" ").replace(b"\n", b" ")  # between tokens: in texts they are escaped
        if data.startswith(_TEXT):
            at, first_seq = len(_TEXT), None
            if data.startswith(_FIRST_SEQ, at):
                first_seq, at = _number(data, at + len(_FIRST_SEQ))
            seq, _ = _number(data, at + len(_SEQ))
            return Envelope(data, "", f"{self._line}.{seq}", 1 if first_seq is None else seq - first_seq + 1)
        payload = _decode(data).payload
        kind, cursor = payload.kind, payload.cursor if payload.kind in _MOVING else None
        if cursor is not None:
            self._line = cursor.rpartition(".")[0]
        if kind == "welcome" and payload.resumed == "gap":
            cursor = None  # the gap itself follows: who sees only this must not take it for delivered
        return Envelope(data, kind, cursor, 0, is_part=kind == "snapshot" and cursor is None)

    def stand_on(self, line: Line) -> None:
        """Where no welcome names the line."""
        self._line = line.decode()


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The digits there, and where the next field begins."""
    end = data.index(b",", at, at + _MAX_DIGITS + 1)
    return int(data[at:end]), end + 1


__all__ = ["Envelope", "Envelopes"]
