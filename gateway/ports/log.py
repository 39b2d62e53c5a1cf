"""Appending to a session's log, and reading it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.entry import Item, LogEntry
from gateway.domain.wire.ids import ClientId, GatewayId, ProducerName, SessionRef, UserId
from gateway.ports.progress import RunProgress
from gateway.ports.runs import Cut


@dataclass(frozen=True, slots=True)
class Page:
    """Retained entries with seq > the one asked for, ascending, read in the same instant as `log`.

    Bounded by count and bytes (at least one entry when there is one). The last page ends at `log.head`.
    """

    log: LogState
    entries: tuple[LogEntry, ...]
    cuts: tuple[tuple[ClientId, Cut], ...] = ()
    """All of the session: a gateway may have missed the notice of an interrupt."""


class ProducerRef(NamedTuple):
    """Who appends. `registers`: this call may make the epoch known, when it is above the one stored (only for a
    gateway's own identity, whose epochs are a counter of one process)."""

    name: ProducerName
    epoch: int
    registers: bool = False


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """1 to 128 items, appended whole or not at all, in order, with numbers first_number, first_number + 1, ..."""

    session: SessionRef
    items: tuple[Item, ...]
    producer: ProducerRef
    first_number: int
    owner: UserId | None = None
    """Becomes the session's owner if this append makes the session."""
    idempotency_key: str | None = None
    """Seen before in this session: every item answers `duplicate`, nothing is written."""
    progress: RunProgress | None = None
    """Stored in the same instant, when the items are appended."""
    due_ms: int | None = None
    """Redis ms of a due note (Deadlines.note): needed by what begins a run, is kept, or waits for its turn."""
    order: "Order | None" = None
    """None: G5's rule, last + 1 only. Otherwise the reorder window replaces it (design.md 6)."""
    kept_ms: int | None = None
    """The items are kept (`expires_in`) so long for those who connect later."""


class Order(StrEnum):
    """What the reorder window does with a hole that stays open for 200 ms."""

    CONTIGUOUS = "contiguous"
    """Report it by `producer_gap`, deliver what is there."""
    REORDER = "reorder"
    """Numbers may have holes: only sort."""


class ItemResult(NamedTuple):
    """`seq` in the session. A duplicate names the seq it got first, or None when that left the window;
    `refused` is the code with which that number was finally refused earlier. `pending`: it waits in the reorder
    window (seq None). `late`: it came after its place was given up, and was appended with `late: true`."""

    seq: int | None
    duplicate: bool
    refused: str | None = None
    pending: bool = False
    late: bool = False


@dataclass(frozen=True, slots=True)
class Appended:
    results: tuple[ItemResult, ...]
    line: Line
    head: int
    live: bool
    """A leased gateway has the session and PUBLISH reached a subscriber."""
    gateways: tuple[GatewayId, ...]
    """Whom the messages were published to: they get `heads` notices."""
    window_ms: int | None = None
    """Something waits in the reorder window: release it after so long (core/order timer; else the sweep does)."""
    gaps: int = 0
    """Holes given up and reported in the log (`producer_gap`) by this call."""
    kept_until_ms: int | None = None
    """Unix ms, with `kept_ms`; of a repeat that of its first time, None when it is kept no more."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Nothing was written: the next number of this producer is `number`."""

    number: int


@dataclass(frozen=True, slots=True)
class AppendRefused:
    """Nothing was written and nothing will be for these numbers (they are consumed where the producer is known)."""

    reason: "AppendRefusal"
    index: int | None = None


class AppendRefusal(StrEnum):
    PRODUCER_UNKNOWN = "producer_unknown"
    """Consumes no number."""
    FENCED = "fenced"
    """The producer's epoch is not the current one. Consumes no number."""
    RUN_ENDED = "run_ended"
    """Item `index` belongs to a run that has ended."""
    HAS_WRITER = "has_writer"
    """Item `index` would be text, begin or end of a run whose text has a writer of its own (a stream, /tokens)."""
    TOO_MANY_RUNS = "too_many_runs"
    """With item `index` more runs of this one request would be open at once than a session retains."""
    GONE = "gone"
    """The session was deleted."""
    DUE_STALE = "due_stale"
    """A due note is needed and missing or older than 20 s. Consumes no number: note, then append again."""
    LATE = "late"
    """Late messages are refused by setting."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Compare-and-set failed: the run's stored input offset is `input_offset`, or the number was used by somebody else.

    Nothing was written. Also after an own attempt whose answer was lost.
    """

    input_offset: int


AppendOutcome = Appended | Expected | AppendRefused | Moved


class Registered(NamedTuple):
    """A new producer epoch; it fences every older one. Numbers start at 1."""

    epoch: int
    line: Line


__all__ = [
    "AppendOutcome",
    "AppendRefusal",
    "AppendRefused",
    "AppendRequest",
    "Appended",
    "Expected",
    "ItemResult",
    "Moved",
    "Order",
    "Page",
    "ProducerRef",
    "Registered",
]
