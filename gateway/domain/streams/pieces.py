"""What comes out of a provider's stream, whatever its dialect: text, reasoning, tool data, and how it ended."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_HIGH_SURROGATES = ("\ud800", "\udbff")
REPLACEMENT = "\ufffd"
_REPLACEMENT_BYTES = REPLACEMENT.encode()


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
    """Part of a call that the client or its agent is to make; each dialect's module says what `data` holds.

    Never merged and never reordered (failure catalogue L05).
    """

    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataPiece:
    """Anything else of structure: citations, results of the provider's own tools, refusals, an application's own."""

    data: dict[str, Any]


Piece = TextPiece | ThinkingPiece | ToolPiece | DataPiece


class EndReason(StrEnum):
    COMPLETE = "complete"
    """The provider said that it had finished, or plain text came to its end."""
    INCOMPLETE = "incomplete"
    """The stream stopped without the provider's word that it had finished (failure catalogue L06)."""
    FAILED = "failed"
    """The provider reported an error, or sent what cannot be read."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """`problem` says what went wrong in a sentence for a person; None exactly when the stream is complete.

    `replaced` counts the U+FFFD that stand for what UTF-8 cannot carry.
    """

    reason: EndReason
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    problem: str | None = None
    replaced: int = 0


class SurrogateMender:
    """JSON may carry half surrogates, UTF-8 not: pairs are joined, also across chunks; a lone one becomes U+FFFD.

    `held` is a high surrogate whose other half may still come, or empty; `replaced` counts the lone ones.
    """

    def __init__(self, held: str = "") -> None:
        self.held = held
        self.replaced = 0

    def feed(self, text: str) -> str:
        if self.held:
            text = self.held + text
        elif text.isascii() or _SURROGATE.search(text) is None:
            return text
        self.held = ""
        if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            self.held, text = text[-1], text[:-1]
        mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        self.replaced += mended.count(REPLACEMENT) - text.count(REPLACEMENT)
        return mended

    def close(self) -> str:
        """What is left when the text ends: nothing, or one U+FFFD."""
        held, self.held = self.held, ""
        self.replaced += len(held)
        return REPLACEMENT if held else ""


def count_replacements(data: bytes, text: str) -> int:
    """How many U+FFFD of `text`, decoded from `data`, do not stand in it: one that does can be no part of an error."""
    return text.count(REPLACEMENT) - data.count(_REPLACEMENT_BYTES)


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
    return _SURROGATE.sub(REPLACEMENT, text).encode()


__all__ = [
    "REPLACEMENT",
    "DataPiece",
    "EndReason",
    "Piece",
    "StreamEnd",
    "SurrogateMender",
    "TextPiece",
    "ThinkingPiece",
    "ToolPiece",
    "count_replacements",
    "encode_json",
    "split_text",
]
