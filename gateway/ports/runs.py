"""Runs: one generation inside a session, who writes it, its text, and how it ends (design.md 6)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ClientId, GatewayId, RunId, SessionRef, UserId


class Track(StrEnum):
    """The two texts of a run; each has its own `at`."""

    TEXT = "text"
    THINKING = "thinking"


class EndedBy(StrEnum):
    """`run_end.reason`."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Start a run, or attach to an open one: either way a new writer epoch that fences the writer before."""

    session: SessionRef
    run: RunId
    start_body: bytes
    """Canonical `run_start` payload without its closing brace (Item.body)."""
    may_start: bool
    """False: attach only, NOT_FOUND when there is no such run."""
    may_attach: bool
    """False: start only, EXISTS when it is open."""
    owner: UserId | None = None
    due_ms: int | None = None
    """Redis ms of the due note that covers its lease (Deadlines.note)."""
    gateway: GatewayId | None = None


@dataclass(frozen=True, slots=True)
class RunWriter:
    """The right to write: appends as producer `run_writer(run)` under `epoch`, numbers from 1 in each epoch."""

    epoch: int
    is_new: bool
    line: Line
    head: int
    input_offset: int
    last_number: int
    """Of the epoch before: the last producer number that is wholly in the log; 0 for a new run."""
    state: bytes
    text_bytes: int
    thinking_bytes: int
    live: bool


class RunRefusal(StrEnum):
    NOT_FOUND = "not_found"
    EXISTS = "exists"
    ENDED = "ended"
    GONE = "gone"
    DUE_STALE = "due_stale"
    """The due note is missing or older than 20 s: note again, then again."""


@dataclass(frozen=True, slots=True)
class RunRefused:
    reason: RunRefusal
    end_body: bytes = b""
    """With ENDED: the payload of its `run_end`, a whole JSON object."""


@dataclass(frozen=True, slots=True)
class RunInfo:
    """One retained run. Bodies are whole JSON objects; empty where there is none."""

    run: RunId
    is_open: bool
    epoch: int
    text_bytes: int
    thinking_bytes: int
    kept_text_bytes: int
    """A prefix of this length is kept; less than `text_bytes` past the cap (`partial`)."""
    kept_thinking_bytes: int
    first_seq: int
    last_seq: int
    lease_ms: int
    """Left of the writer's lease; 0 when ended."""
    input_offset: int
    last_number: int
    state: bytes
    gateway: GatewayId | None
    start_body: bytes
    end_body: bytes


class Seen(NamedTuple):
    """What a user had seen of a run: the last seq, and text bytes up to which it was on screen."""

    seq: int
    at: int


@dataclass(frozen=True, slots=True)
class StopRun:
    """Interrupt, cancel, or end by somebody who is not the writer. Idempotent."""

    session: SessionRef
    run: RunId
    reason: EndedBy
    client: ClientId | None = None
    """The interrupting client: gets its cut. None: nobody does."""
    seen: Seen | None = None
    fields: bytes = b""
    """More members of the `run_end` payload, as JSON from after the reason: `,"by":"u1"`; may be empty."""
    due_ms: int | None = None
    item: bytes = b""
    """For the agent, into the outbox, when this call ends the run; empty: nothing. Needs `due_ms`."""
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """`is_new` False: it had ended before (its `end_body` says how); the cut is stored all the same."""

    is_new: bool
    end_seq: int
    head: int
    line: Line
    end_body: bytes
    writer_gateway: GatewayId | None
    client_gateways: tuple[GatewayId, ...]
    """Where the interrupting client has connections: they were told by CUT."""
    gateways: tuple[GatewayId, ...]
    """Whom the `run_end` was published to (AppendNotes)."""


class Cut(NamedTuple):
    """For one client: text-bearing frames of `run` that it had not got at its interrupt become `cut` frames."""

    run: RunId
    seen: Seen | None


class RunText(NamedTuple):
    """Part of a kept text: `text` is UTF-8, whole code points, from `start` on. `line`: None when it is gone."""

    line: Line | None
    start: int
    text: bytes
    kept_bytes: int


class RunBrief(NamedTuple):
    """A retained run as a snapshot needs it, from one instant. Texts go up to `*_until`: the `at` of the first
    retained frame of that track, or all of it when none is retained. `*_kept` below it: `partial`."""

    run: RunId
    is_open: bool
    text_until: int
    text_kept: int
    thinking_until: int
    thinking_kept: int
    last_seq: int
    start_body: bytes
    end_body: bytes


class KeptItem(NamedTuple):
    """A retained push or open ask: its finished frame."""

    seq: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class SnapshotPlan:
    """All that can be rebuilt below the first retained seq (`log.lost` + 1), in one instant."""

    log: LogState
    runs: tuple[RunBrief, ...]
    """In the order in which they began."""
    kept: tuple[KeptItem, ...]
    """Ascending, seq <= log.lost."""


class RunStore(Protocol):
    """Every call is atomic in Redis, one attempt, raises StoreUnavailable only."""

    async def open_run(self, request: OpenRun) -> RunWriter | RunRefused: ...

    async def run(self, session: SessionRef, run: RunId) -> RunInfo | None: ...

    async def runs(self, session: SessionRef) -> list[RunInfo]:
        """All retained ones, oldest first."""
        ...

    async def keep_alive(self, session: SessionRef, run: RunId, epoch: int) -> RunRefused | None:
        """The writer's lease again. Refused: ENDED, NOT_FOUND, or EXISTS (another epoch writes)."""
        ...

    async def stop_run(self, request: StopRun) -> Stopped | RunRefused: ...

    async def run_text(
        self, session: SessionRef, run: RunId, track: Track, start: int, until: int, max_bytes: int
    ) -> RunText: ...

    async def snapshot(self, session: SessionRef) -> SnapshotPlan | None:
        """None: no meta."""
        ...


__all__ = [
    "Cut",
    "EndedBy",
    "KeptItem",
    "OpenRun",
    "RunBrief",
    "RunInfo",
    "RunRefusal",
    "RunRefused",
    "RunStore",
    "RunText",
    "RunWriter",
    "Seen",
    "SnapshotPlan",
    "StopRun",
    "Stopped",
    "Track",
]
