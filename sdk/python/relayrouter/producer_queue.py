"""What a producer still holds: unacknowledged messages, and the last acknowledged ones in case writes were lost. Pure.

Owns the numbers: message i of this queue always has number `first_number + i` in the current producer epoch.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from relayrouter.producer_lines import line_of

BATCH_ITEMS = 128
BATCH_BYTES = 240 * 1024
"""Of one request; the gateway's limit is 256 KiB."""
KEPT_ITEMS = 512
KEPT_BYTES = 2 * 1024 * 1024
"""Acknowledged messages kept for a gateway that lost writes."""
_OVERHEAD_BYTES = 16
"""Around one payload in a batch: `{"payload":` and `},`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message. `sender`: whoever waits for it; None: nobody."""

    body: bytes = field(repr=False)
    expires_in: float | None
    sender: object
    is_last: bool = True
    """Of its push."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages first_number, first_number + 1, ... with one expiry."""

    first_number: int
    entries: tuple[Entry, ...]

    def encode(self, producer: str, epoch: int, owner: str | None) -> bytes:
        head: dict[str, Any] = {"producer": producer, "epoch": epoch, "number": self.first_number}
        if self.entries[0].expires_in is not None:
            head["expires_in"] = self.entries[0].expires_in
        if owner is not None:
            head["owner"] = owner
        messages = b",".join(b'{"payload":' + entry.body + b"}" for entry in self.entries)
        return line_of(head)[:-2] + b',"messages":[' + messages + b"]}"


class SendQueue:
    """Bounded by what `push` lets in, plus the acknowledged messages kept."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._acked = 0
        self._acked_bytes = 0
        self._first_number = 1
        self.unsent_bytes = 0
        """Not yet acknowledged."""

    @property
    def unsent_items(self) -> int:
        return len(self._entries) - self._acked

    @property
    def next_number(self) -> int:
        """Of the first message that is not acknowledged."""
        return self._first_number + self._acked

    @property
    def first_number(self) -> int:
        """The lowest number that can still be sent again."""
        return self._first_number

    def add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.unsent_bytes += len(entry.body)

    def next_batch(self) -> Batch:
        """As many unacknowledged messages with one expiry as one request takes; at least one when there is one.

        A push that fits into one request goes in one.
        """
        entries: list[Entry] = []
        size = whole = 0
        for index in range(self._acked, min(len(self._entries), self._acked + BATCH_ITEMS)):
            entry = self._entries[index]
            size += len(entry.body) + _OVERHEAD_BYTES
            if entries and (size > BATCH_BYTES or entry.expires_in != entries[0].expires_in):
                break
            entries.append(entry)
            if entry.is_last:
                whole = len(entries)
        return Batch(self.next_number, tuple(entries[: whole or len(entries)]))

    def acknowledge(self, count: int) -> None:
        """The first `count` unacknowledged messages are in the log."""
        for _ in range(count):
            size = len(self._entries[self._acked].body)
            self._acked += 1
            self._acked_bytes += size
            self.unsent_bytes -= size
        while self._acked > KEPT_ITEMS or (self._acked and self._acked_bytes > KEPT_BYTES):
            self._acked_bytes -= len(self._entries.popleft().body)
            self._acked -= 1
            self._first_number += 1

    def rewind(self, number: int) -> int:
        """Messages from `number` (>= first_number) on were lost: they are unacknowledged again. Returns how many."""
        count = self.next_number - number
        for _ in range(count):
            self._acked -= 1
            size = len(self._entries[self._acked].body)
            self._acked_bytes -= size
            self.unsent_bytes += size
        return count

    def renumber(self) -> None:
        """A new producer epoch: what is unacknowledged gets the numbers from 1; nothing older can be sent again."""
        for _ in range(self._acked):
            self._entries.popleft()
        self._acked = self._acked_bytes = 0
        self._first_number = 1

    def put_first(self, entry: Entry) -> None:
        """Right after `renumber`: it goes before everything else."""
        self._entries.appendleft(entry)
        self.unsent_bytes += len(entry.body)

    def drop(self, senders: set[object]) -> None:
        """What these still have unsent is not sent any more. `renumber` first: the numbers close up."""
        if self._acked:
            raise RuntimeError("numbers are in use")
        self._entries = deque(entry for entry in self._entries if entry.sender not in senders)
        self.unsent_bytes = sum(len(entry.body) for entry in self._entries)

    def senders(self) -> set[object]:
        """Those who wait."""
        return {entry.sender for entry in list(self._entries)[self._acked :]}


__all__ = ["Batch", "Entry", "SendQueue"]
