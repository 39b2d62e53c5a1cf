"""What the user sends, in order and exactly once: numbers from the gateway, sent again until accepted. Bounded, pure.

Owns the numbers. Persisted by the session before anything goes out; the gateway takes a repeat for what it is.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from relayrouter.errors import ConflictError, QueueFullError, RelayError, TooLargeError
from relayrouter.events import InputEvent
from relayrouter.store import SavedInput

WINDOW = 16
"""Sent and not yet accepted."""
DEFAULT_LIMIT_BYTES = 64 * 1024
"""Of one payload, until a gateway says its own."""
_RETRY_SECONDS = 0.5


@dataclass(slots=True, eq=False)
class Entry:
    payload: dict[str, Any] = field(repr=False)
    size_bytes: int
    seq: int | None = None
    is_sent: bool = False
    answer: "asyncio.Future[int] | None" = None

    def to_text(self) -> str:
        return _dump({"type": "text", "seq": self.seq, "payload": self.payload})

    def to_body(self, client: str) -> bytes:
        return _dump({"client": client, "seq": self.seq, "payload": self.payload}).encode("utf-8", "surrogatepass")


class InputQueue:
    """`on_event` is told of every change of an entry."""

    def __init__(self, max_items: int, max_bytes: int, on_event: Callable[[InputEvent], None]) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._on_event = on_event
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._limit_bytes = DEFAULT_LIMIT_BYTES
        self._last_seq: int | None = None
        """The highest number given out or known to the gateway; None before it was heard."""
        self.not_before = 0.0
        """The gateway asked to wait until then."""

    def __len__(self) -> int:
        return len(self._entries)

    def saved(self) -> tuple[SavedInput, ...]:
        return tuple(SavedInput(entry.seq, entry.payload) for entry in self._entries)

    def restore(self, saved: Iterable[SavedInput]) -> None:
        """What another life of this client had not heard of as accepted."""
        for each in saved:
            self._take(Entry(each.payload, _size_of(each.payload), each.seq))

    def add(self, payload: dict[str, Any], answer: "asyncio.Future[int] | None" = None) -> Entry:
        """Raises TooLargeError, QueueFullError; TypeError, ValueError for what is no JSON object: nothing was taken."""
        if not isinstance(payload, dict):
            raise TypeError("an input is a dict, like {'text': 'Hello'}")
        size = _size_of(payload)
        if size > self._limit_bytes:
            raise TooLargeError(
                f"the message has {size} bytes, the gateway takes {self._limit_bytes}",
                details={"limit_bytes": self._limit_bytes},
            )
        if len(self._entries) >= self._max_items or self._bytes + size > self._max_bytes:
            raise QueueFullError(f"the input queue is full ({len(self._entries)} messages, {self._bytes} bytes)")
        # A copy: a repeat says the same, whatever the application has done with its own.
        entry = Entry(json.loads(_dump(payload)), size, answer=answer)
        self._take(entry)
        self._tell(entry, "queued")
        return entry

    # ---- channels ----------------------------------------------------------------------------------------------

    def welcome(self, input_seq: int | None, limit_bytes: int | None) -> None:
        """A new channel: everything that is not accepted is sent again."""
        if limit_bytes is not None:
            self._limit_bytes = limit_bytes
        numbered = [entry.seq for entry in self._entries if entry.seq is not None]
        if input_seq is not None or self._last_seq is None:
            self._last_seq = max([input_seq or 0, *numbered])
        for entry in [entry for entry in self._entries if entry.size_bytes > self._limit_bytes]:
            self._fail(entry, TooLargeError(f"the gateway takes {self._limit_bytes} bytes"))
        self.lost()

    def lost(self) -> None:
        for entry in self._entries:
            entry.is_sent = False

    def due(self, now: float, window: int = WINDOW) -> list[Entry]:
        """What may be sent now, in order, with numbers. The caller persists them before it sends and calls `sent`."""
        if self._last_seq is None or now < self.not_before:
            return []
        due = []
        for entry in list(self._entries)[:window]:
            if entry.seq is None:
                self._last_seq += 1
                entry.seq = self._last_seq
            if not entry.is_sent:
                due.append(entry)
        return due

    def sent(self, entry: Entry) -> None:
        entry.is_sent = True
        self._tell(entry, "sent")

    # ---- answers -----------------------------------------------------------------------------------------------

    def accepted(self, seq: int) -> None:
        entry = self._find(seq)
        if entry is not None:
            self._remove(entry)
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_result(seq)
            self._tell(entry, "accepted")

    def refused(self, seq: int, error: RelayError, expected: int | None, after_ms: float | None, now: float) -> None:
        """An `error` about number `seq`. What passes is sent again, in order."""
        entry = self._find(seq)
        if entry is None:
            return
        if error.code == "conflict":
            if expected is not None:
                self._last_seq = max([expected - 1, *(each.seq for each in self._entries if each.seq is not None)])
            self._fail(entry, ConflictError(error.message, status=error.status, details=error.details))
        elif error.code == "expected" and expected is not None:
            self._go_on_from(expected)
            self._wait(now, 0.05)
        elif error.retryable or error.code == "fenced":
            self._wait(now, after_ms / 1000 if after_ms is not None else _RETRY_SECONDS)
        else:
            self._fail(entry, error)
            self._go_on_from(seq)

    def drop_biggest(self, error: RelayError) -> None:
        """The gateway closed for a message that was too big: it must have been the biggest that was on its way."""
        sent = [entry for entry in self._entries if entry.is_sent]
        if sent:
            biggest = max(sent, key=lambda entry: entry.size_bytes)
            seq = biggest.seq
            self._fail(biggest, error)
            if seq is not None:
                self._go_on_from(seq)

    def close(self, error: RelayError, *, is_kept: bool) -> None:
        """Nobody waits any more. `is_kept`: the entries stay where they are persisted, for the next life."""
        for entry in list(self._entries):
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(error)
            if not is_kept:
                self._remove(entry)
                self._tell(entry, "failed", error)

    # ---- inside ------------------------------------------------------------------------------------------------

    def _go_on_from(self, expected: int) -> None:
        """The gateway takes `expected` next: numbers from there on are given anew, without a hole."""
        number = expected
        for entry in self._entries:
            if entry.seq is not None and entry.seq >= expected:
                entry.is_sent = entry.is_sent and entry.seq == number
                entry.seq = number
                number += 1
        self._last_seq = number - 1

    def _wait(self, now: float, seconds: float) -> None:
        self.not_before = max(self.not_before, now + seconds)
        self.lost()

    def _take(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._bytes += entry.size_bytes

    def _find(self, seq: int) -> Entry | None:
        return next((entry for entry in self._entries if entry.seq == seq), None)

    def _remove(self, entry: Entry) -> None:
        self._entries.remove(entry)
        self._bytes -= entry.size_bytes

    def _fail(self, entry: Entry, error: RelayError) -> None:
        self._remove(entry)
        if entry.answer is not None and not entry.answer.done():
            entry.answer.set_exception(error)
        self._tell(entry, "failed", error)

    def _tell(self, entry: Entry, status: Any, error: RelayError | None = None) -> None:
        self._on_event(InputEvent(entry.seq, status, entry.payload, error))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size_of(payload: dict[str, Any]) -> int:
    """As the gateway counts it. Raises TypeError or ValueError for what is no JSON."""
    return len(json.dumps(payload, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())


__all__ = ["DEFAULT_LIMIT_BYTES", "WINDOW", "Entry", "InputQueue"]
