"""How a run's text is cut: the modes and their limits, checked once."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import regex

MIN_HELD_BYTES: Final = 16
MAX_HELD_BYTES: Final = 1_024
"""With it a saved state fits 2 KiB, whatever the text."""
MAX_TOKENS: Final = 1_000
MAX_DELAY_MS: Final = 10_000
MAX_PATTERN_CHARS: Final = 1_000
PATTERN_TIMEOUT_SECONDS: Final = 0.01
"""Of processor time, per look at a text; a thousand times what a harmless pattern takes."""


class SegmentMode(StrEnum):
    TOKENS = "tokens"
    """So many word-like tokens per segment."""
    SENTENCE = "sentence"
    """Sentences of Latin and CJK scripts, and lines."""
    STRUCTURE = "structure"
    """Code blocks typed; headings, list items and tables whole; sentences otherwise."""
    PATTERN = "pattern"
    """A segment ends where a match of a regular expression ends."""
    RAW = "raw"
    """What comes goes, at once."""


@dataclass(frozen=True, slots=True)
class SegmentOptions:
    """Raises ValueError that says what to do."""

    mode: SegmentMode = SegmentMode.TOKENS
    tokens: int = 15
    """How many word-like tokens make a segment, in mode `tokens`."""
    max_delay_ms: int = 60
    """No code point is held longer, provided that `tick` is called when due."""
    max_bytes: int = MAX_HELD_BYTES
    """UTF-8 bytes that may be held; no segment is longer, except in mode `raw`."""
    first_immediately: bool = True
    """The first text of a run is due at once."""
    pattern: str | None = None
    """The regular expression of mode `pattern`."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "mode", SegmentMode(self.mode))
        except ValueError:
            raise ValueError(f"mode `{self.mode}` is none of: {', '.join(SegmentMode)}") from None
        _check_range("tokens", self.tokens, 1, MAX_TOKENS)
        _check_range("max_delay_ms", self.max_delay_ms, 0, MAX_DELAY_MS)
        _check_range("max_bytes", self.max_bytes, MIN_HELD_BYTES, MAX_HELD_BYTES)
        if (self.pattern is None) == (self.mode is SegmentMode.PATTERN):
            raise ValueError("give a pattern in mode `pattern`, and in no other mode")
        if self.pattern is not None:
            compile_pattern(self.pattern)


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} is {value}; choose {low} to {high}")


def compile_pattern(pattern: str) -> "regex.Pattern[str]":
    """Raises ValueError that says what to change."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ValueError(f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN_CHARS} are allowed")
    try:
        pattern.encode()  # a surrogate is in no text, and would not fit a message
        compiled = regex.compile(pattern)
        matches_nothing = compiled.search("", timeout=PATTERN_TIMEOUT_SECONDS)
    except (regex.error, ValueError, RecursionError) as exc:
        raise ValueError(f"the pattern is not a regular expression: {exc}") from None
    except TimeoutError:
        raise ValueError("the pattern takes too long on the empty text; write it without recursion") from None
    if matches_nothing:
        raise ValueError("the pattern matches the empty text and would cut everywhere; let it match something")
    return compiled


__all__ = [
    "MAX_HELD_BYTES",
    "MIN_HELD_BYTES",
    "PATTERN_TIMEOUT_SECONDS",
    "SegmentMode",
    "SegmentOptions",
    "compile_pattern",
]
