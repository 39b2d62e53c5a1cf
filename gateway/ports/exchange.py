"""From the client to the agent: input, asks and answers, the outbox of a session; and what a sweep of it does."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, RunId, SessionRef, UserId

AskId = str
"""1-128 bytes of printable UTF-8, chosen by the agent."""


# ---- input -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputRequest:
    """One message of a client. Durable in the outbox, shown as `echo`, only then accepted (G12)."""

    session: SessionRef
    client: ClientId
    user: UserId
    number: int
    """The client's seq: contiguous from 1."""
    digest: str
    """SHA-256 of the canonical payload: the same number with another body is a conflict."""
    echo_body: bytes
    """Canonical `echo` payload without its closing brace (kind, client, input seq, payload)."""
    item: bytes
    """What the agent gets: a whole JSON object (docs/protocol.md "inbox items")."""
    item_id: str
    connection: ConnectionId | None = None
    """With `generation`: refused when it no longer owns the route (G6). None: HTTP, not fenced."""
    generation: int = 0
    due_ms: int | None = None
    may_create: bool = False
    """A missing session is made: the caller's pattern covers the id."""


@dataclass(frozen=True, slots=True)
class InputAccepted:
    """`is_repeat`: it was accepted before; nothing was written."""

    number: int
    seq: int
    """Of the echo; 0 for a repeat."""
    is_repeat: bool
    line: Line
    head: int
    gateways: tuple[GatewayId, ...]


class InputRefusal(StrEnum):
    CONFLICT = "conflict"
    """The same number with another body."""
    EXPECTED = "expected"
    SUPERSEDED = "superseded"
    OUTBOX_FULL = "outbox_full"
    NOT_FOUND = "not_found"
    DUE_STALE = "due_stale"


@dataclass(frozen=True, slots=True)
class InputRefused:
    reason: InputRefusal
    expected: int = 0
    """The number that comes next."""


# ---- asks --------------------------------------------------------------------------------------------------------


class AskStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class OpenAsk:
    session: SessionRef
    ask: AskId
    run: RunId | None
    """A cancelled run cancels its asks."""
    body: bytes
    """Canonical `ask` payload without its closing brace."""
    record: bytes
    """Opaque JSON that answering needs (schema, options, who may); given back in AskInfo."""
    expires_in_ms: int
    owner: UserId | None = None
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AskInfo:
    ask: AskId
    status: AskStatus
    seq: int
    expires_in_ms: int
    record: bytes
    frame: bytes
    """The finished `ask` frame as the log had it."""
    resolution: bytes
    """The `ask_resolved` payload, a whole JSON object; empty while open."""
    is_new: bool = True
    """Of `open_ask`: False when the same ask (same body) was opened before."""
    line: Line | None = None
    head: int = 0
    gateways: tuple[GatewayId, ...] = ()
    live: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """First valid one wins, in one script with the outbox."""

    session: SessionRef
    ask: AskId
    status: AskStatus
    """ANSWERED, or CANCELLED by the agent (then without an item)."""
    resolved_body: bytes
    """Canonical `ask_resolved` payload without its closing brace."""
    item: bytes = b""
    item_id: str = ""
    due_ms: int | None = None


class AskRefusal(StrEnum):
    NOT_FOUND = "not_found"
    TOO_MANY = "too_many"
    CONFLICT = "conflict"
    """The id is taken by another ask."""
    RUN_ENDED = "run_ended"
    OUTBOX_FULL = "outbox_full"
    GONE = "gone"
    DUE_STALE = "due_stale"


@dataclass(frozen=True, slots=True)
class AskRefused:
    reason: AskRefusal


@dataclass(frozen=True, slots=True)
class Resolved:
    """`is_winner` False: somebody was first; `ask` tells the outcome."""

    is_winner: bool
    ask: AskInfo


# ---- outbox, sweep -----------------------------------------------------------------------------------------------


class OutboxItem(NamedTuple):
    entry: str
    item: bytes


class SweepResult(NamedTuple):
    """What one sweep of a session did, and when it wants the next one (None: nothing is due any more)."""

    found: bool
    next_in_ms: int | None
    has_outbox: bool
    line: Line | None
    head: int
    gateways: tuple[GatewayId, ...]
    events: tuple[str, ...]
    """`abandoned`, `expired`, `released`, `kept`: for measures."""


class Exchange(Protocol):
    """What a session exchanges with its agent. Every call is atomic in Redis and one attempt."""

    async def accept_input(self, request: InputRequest) -> InputAccepted | InputRefused: ...

    async def open_ask(self, request: OpenAsk) -> AskInfo | AskRefused: ...

    async def ask(
        self, session: SessionRef, ask: AskId, watcher: GatewayId | None = None, *, leaves: bool = False
    ) -> AskInfo | None:
        """With `watcher`: that gateway is told (bus ASK_RESOLVED) when it is resolved; not any more with `leaves`."""
        ...

    async def resolve_ask(self, answer: Answer) -> Resolved | AskRefused: ...

    async def outbox(self, session: SessionRef, limit: int) -> list[OutboxItem]: ...

    async def relayed(self, session: SessionRef, entries: Sequence[str]) -> None:
        """They are in the inbox: remove them."""
        ...

    async def sweep(self, session: SessionRef) -> SweepResult:
        """Everything overdue of this session: pending messages, then abandoned runs, expired asks and kept items."""
        ...


__all__ = [
    "Answer",
    "AskId",
    "AskInfo",
    "AskRefusal",
    "AskRefused",
    "AskStatus",
    "Exchange",
    "InputAccepted",
    "InputRefusal",
    "InputRefused",
    "InputRequest",
    "OpenAsk",
    "OutboxItem",
    "Resolved",
    "SweepResult",
]
