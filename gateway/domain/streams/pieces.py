"""What comes out of a provider's stream, whatever its dialect: text, reasoning, tool data, and how it ended."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_HIGH_SURROGATES = ("\ud800", "\udbff")


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Part of the answer; never empty, never with a surrogate."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """Part of the reasoning; never empty, never with a surrogate."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolPiece:
    """Tool-call deltas exactly as the provider sent them (failure catalogue L05)."""

    data: dict[str, Any]


Piece = TextPiece | ThinkingPiece | ToolPiece


class EndReason(StrEnum):
    COMPLETE = "complete"
    """The provider said that it had finished, or plain text came to its end."""
    INCOMPLETE = "incomplete"
    """The stream stopped without the provider's word that it had finished (failure catalogue L06)."""
    FAILED = "failed"
    """The provider reported an error, or sent what cannot be read."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """`problem` says what went wrong in a sentence for a person; None exactly when the stream is complete."""

    reason: EndReason
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    problem: str | None = None


class SurrogateMender:
    """JSON may carry half surrogates, UTF-8 not: pairs are joined, also across chunks; a lone one becomes U+FFFD."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        self._held = ""
        if text.isascii():
            return text
        if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            self._held, text = text[-1], text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def close(self) -> str:
        """What is left when the text ends: nothing, or one U+FFFD."""
        held, self._held = self._held, ""
        return "\ufffd" if held else ""


def split_text(text: str, max_bytes: int) -> Iterator[str]:
    """Cut into parts of at most `max_bytes` (>= 4) UTF-8 bytes, on code points; nothing for an empty text."""
    if len(text) * 4 <= max_bytes:
        if text:
            yield text
        return
    data = text.encode()
    start = 0
    while start < len(data):
        end = min(start + max_bytes, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        yield data[start:end].decode()
        start = end


def encode_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; lone surrogates anywhere in it become U+FFFD (failure catalogue A12)."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub("\ufffd", text).encode()


__all__ = [
    "EndReason",
    "Piece",
    "StreamEnd",
    "SurrogateMender",
    "TextPiece",
    "ThinkingPiece",
    "ToolPiece",
    "encode_json",
    "split_text",
]
