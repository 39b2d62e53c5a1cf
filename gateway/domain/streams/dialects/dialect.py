"""What every dialect promises, and the dialects' names on the wire and the command line."""

from enum import StrEnum
from typing import Protocol

from gateway.domain.streams.pieces import Piece, StreamEnd


class DialectName(StrEnum):
    TEXT = "text"
    """UTF-8 text."""
    NDJSON = "ndjson"
    """Our own line schema, see `ndjson.py`."""
    OPENAI = "openai"
    """Chat completions, completions and Responses events, bare or as an event stream."""
    ANTHROPIC = "anthropic"
    """Events of the Messages API, bare or as an event stream."""


class Dialect(Protocol):
    """One stream: bytes -> pieces. How the bytes are cut never changes the texts, and no bytes make it raise.

    After `is_over` further bytes are ignored; `close` is called once, at the end of the input.
    """

    @property
    def is_over(self) -> bool:
        """The stream said that it ended, or failed: nothing that follows counts."""
        ...

    @property
    def replaced(self) -> int:
        """How many U+FFFD were put in place of what UTF-8 cannot carry."""
        ...

    def feed(self, data: bytes) -> list[Piece]: ...

    def close(self) -> tuple[list[Piece], StreamEnd]: ...

    def save(self) -> tuple[int, bytes]:
        """(offset in the input, state of at most 1 KiB), cheap enough for every append.

        A dialect opened with both and fed the input from the offset on gives what this one still would give; only
        usage that has no room in the state is left out.
        """
        ...


__all__ = ["Dialect", "DialectName"]
