"""Cursor: how far a client is, `<epoch>.<fork>.<seq>` (protocol.md 1). Opaque to applications; the SSE event id."""

import re
from dataclasses import dataclass
from typing import NewType

MAX_SEQ = 2**53 - 1
"""JSON numbers are doubles in browsers (failure catalogue B09)."""

Line = NewType("Line", bytes)
"""`<epoch>.<fork>` as one token: two positions may be compared only when their lines are equal."""

_CURSOR = re.compile(r"([0-9a-z]{1,32})\.([0-9a-z]{1,32})\.(0|[1-9][0-9]{0,15})")


class InvalidCursor(ValueError):
    """Not a cursor that a gateway gave out."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position after `seq` on one fork of one epoch. seq 0 is before the first message."""

    epoch: str
    fork: str
    seq: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        match = _CURSOR.fullmatch(text)
        if match is None or int(match[3]) > MAX_SEQ:
            raise InvalidCursor("must look like <epoch>.<fork>.<seq>; use one that a gateway sent")
        return cls(match[1], match[2], int(match[3]))

    @property
    def line(self) -> Line:
        return Line(f"{self.epoch}.{self.fork}".encode())

    def __str__(self) -> str:
        return f"{self.epoch}.{self.fork}.{self.seq}"


def parse_seq(text: str) -> int:
    """A bare `last_received_seq`: a decimal integer from 0 to 2^53 - 1 without sign; raises InvalidCursor."""
    if re.fullmatch(r"0|[1-9][0-9]{0,15}", text) is None or int(text) > MAX_SEQ:
        raise InvalidCursor("last_received_seq must be an integer from 0 to 2^53 - 1")
    return int(text)
