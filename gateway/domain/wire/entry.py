"""Log entries and append items: one message before and after it has its place in the log (redis.md layout 1)."""

from enum import StrEnum
from typing import NamedTuple


class EntryClass(StrEnum):
    """Field `c` of a log entry: tells merging and cutting what a frame is without parsing it."""

    DELTA = "d"
    """Canonical delta: payload is exactly kind, run, text (+ at). Mergeable with its neighbours of the run."""
    THINKING = "t"
    """Canonical thinking text: payload is exactly kind, run, text (+ at of its own). Mergeable likewise."""
    CODE = "k"
    """Code block text of a run (`code_block`); part of the run's text, not mergeable."""
    TOOL = "l"
    """Tool data of a run; text-bearing for cuts (design.md 6), but no part of its text."""
    RUN_START = "s"
    RUN_END = "e"
    OTHER = "o"
    """Anything else, also deltas that carry more fields than the canonical ones."""


class LogEntry(NamedTuple):
    """One retained message. `frame` is the finished JSON text frame; `at` is None where the kind has none."""

    seq: int
    cls: bytes
    run: bytes
    at: int | None
    text_bytes: int
    frame: bytes


class Item(NamedTuple):
    """One message to append. `body` is the payload's JSON object without its closing brace: the script writes
    `<head>` + body + [`,"at":<n>`] + `}}`, so `at` comes from the run's length in Redis, never from a process.
    `counts_text`: body's text is part of its run's text (delta) or thinking; then `at` is added and the length grows.
    """

    cls: EntryClass
    run: str
    text_bytes: int
    counts_text: bool
    body: bytes
    tail_bytes: int = 0
    """With `counts_text`: the body ends in so many bytes of JSON-escaped text and its closing quote, which the script
    appends to the run's kept text. So `text` is the last member of such a payload."""
