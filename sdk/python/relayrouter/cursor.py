"""Cursor: how far a client is, `<epoch>.<fork>.<seq>`. Opaque to applications, stored as one value."""

import re
from dataclasses import dataclass

from relayrouter.errors import ProtocolError

MAX_SEQ = 2**53 - 1
"""JSON numbers are doubles in browsers."""

_CURSOR = re.compile(r"([0-9a-z]{1,32})\.([0-9a-z]{1,32})\.(0|[1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position after `seq` on one fork of one epoch. seq 0 is before the first message."""

    epoch: str
    fork: str
    seq: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Raises ProtocolError."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise ProtocolError("a cursor looks like <epoch>.<fork>.<seq>; use one that a gateway sent")
        if int(match[3]) > MAX_SEQ:
            raise ProtocolError("the seq of a cursor is above 2^53 - 1")
        return cls(match[1], match[2], int(match[3]))

    @property
    def line(self) -> tuple[str, str]:
        """Two positions may be compared only when their lines are equal."""
        return self.epoch, self.fork

    def at(self, seq: int) -> "Cursor":
        """Another position on the same line."""
        return Cursor(self.epoch, self.fork, seq)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.fork}.{self.seq}"


__all__ = ["MAX_SEQ", "Cursor"]
