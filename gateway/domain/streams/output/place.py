"""What a reader of a dialect has of its run, and the event id that carries it: `<cursor>~<place>`.

The gateway keeps nothing between two requests: the id of the last event that arrived says where to go on, and what is
open there. Ids come back from clients, so they are checked like any input.
"""

import base64
import binascii
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from gateway.domain.wire.cursor import Cursor, InvalidCursor
from gateway.domain.wire.ids import InvalidId, check_id

UNKNOWN: Final = -1
"""Of a text's length: the reader came with a plain cursor."""
MAX_ID_BYTES: Final = 7 * 1024
"""It comes back as a header, and common proxies take lines of 8 KiB. Nearly all ids are below 200 bytes."""
_MARK: Final = "~"
_encode = msgspec.json.Encoder().encode


class OpenPart(StrEnum):
    """Which of a run's two texts a dialect has open."""

    NONE = ""
    TEXT = "t"
    THINKING = "r"
    SPAN = "s"
    """AG-UI's span of reasoning, with no message open in it."""


class OpenCall(NamedTuple):
    """A tool call whose arguments are coming. `key`: the provider's id of it; `id`: what the reader knows it by."""

    place: int
    """The provider's number of it; -1: it has none."""
    key: str
    id: str
    name: str
    number: int
    """0 for the run's first call."""


@dataclass(slots=True)
class Place:
    """Grows with what is sent. `text_bytes`, `thinking_bytes`: so much of either text has gone out."""

    run: str = ""
    """Empty: the next run that begins will be taken."""
    is_started: bool = False
    is_over: bool = False
    part: OpenPart = OpenPart.NONE
    text_bytes: int = 0
    thinking_bytes: int = 0
    call_count: int = 0
    calls: list[OpenCall] = field(default_factory=list)
    steps_done: int = 0
    """Of the message after the cursor, which holds tool calls: twice the parts of it that have gone out, plus one when
    the next one's call was begun."""

    def encode(self) -> str:
        value = (
            self.run,
            self.is_started,
            self.is_over,
            self.part,
            self.text_bytes,
            self.thinking_bytes,
            self.call_count,
            self.calls,
            self.steps_done,
        )
        return base64.urlsafe_b64encode(_encode(value)).decode().rstrip("=")


class _Fields(NamedTuple):
    """As a place is written."""

    run: str
    is_started: bool
    is_over: bool
    part: OpenPart
    text_bytes: int
    thinking_bytes: int
    call_count: int
    calls: list[OpenCall]
    steps_done: int


_DECODER: Final = msgspec.json.Decoder(_Fields)


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a request goes on. `place` None: a cursor of another format, which says nothing of the run."""

    cursor: Cursor | None
    """None: before the first position was known."""
    place: Place | None
    is_continued: bool
    """True: the same stream goes on (Last-Event-ID), nothing is opened twice. False: a new request of the library."""

    @classmethod
    def parse(cls, text: str, *, is_continued: bool) -> "Resume":
        """Raises InvalidCursor."""
        cursor_text, mark, place_text = text.partition(_MARK)
        cursor = Cursor.parse(cursor_text) if cursor_text or not mark else None
        return cls(cursor, _place(place_text) if mark else None, is_continued)

    @property
    def is_over(self) -> bool:
        """The run had ended there: there is nothing to go on with."""
        return self.place is not None and self.place.is_over


def event_id(cursor: str, place: Place) -> str:
    """`cursor` may be empty."""
    return f"{cursor}{_MARK}{place.encode()}"


def _place(text: str) -> Place:
    if len(text) > MAX_ID_BYTES:
        raise InvalidCursor("is too long to be an event id of this gateway")
    try:
        fields = _DECODER.decode(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise InvalidCursor("must be an event id that a gateway sent, whole") from None
    if fields.run:
        try:
            check_id(fields.run, "run")  # it is looked up
        except InvalidId:
            raise InvalidCursor("must be an event id that a gateway sent, unchanged") from None
    if min(fields.text_bytes, fields.thinking_bytes) < UNKNOWN or min(fields.call_count, fields.steps_done) < 0:
        raise InvalidCursor("must be an event id that a gateway sent, unchanged")
    return Place(*fields)


__all__ = ["MAX_ID_BYTES", "UNKNOWN", "OpenCall", "OpenPart", "Place", "Resume", "event_id"]
