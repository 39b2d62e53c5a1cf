"""From the client to the agent: input, asks and answers, the outbox of a session, the inbox shards; and deadlines."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, RunId, SessionKey, SessionRef, Tenant, UserId

AskId = str
"""1-128 bytes of printable UTF-8, chosen by the agent."""


# ---- deadlines (redis.md `rr:due:<shard>`) -----------------------------------------------------------------------


class Deadlines(Protocol):
    """The index of deadlines; written before the state that it names."""

    async def note(self, session: SessionRef, in_ms: int) -> int:
        """Something of this session is due in so many ms. Returns the Redis time (ms) of the note, valid for 20 s."""
        ...

    async def due(self, shard: int, limit: int) -> list["Due"]:
        """Overdue entries of one shard."""
        ...

    async def settle(self, due: "Due", next_in_ms: int | None) -> None:
        """Move or (None) remove the entry, only if its score is still the one read."""
        ...


class Due(NamedTuple):
    session: SessionKey
    shard: int
    score: str
    overdue_ms: int


DUE_SHARDS = 16


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


# ---- outbox, inbox -----------------------------------------------------------------------------------------------


class OutboxItem(NamedTuple):
    entry: str
    item: bytes


class InboxItem(NamedTuple):
    """`deliveries` counts from 1; `entry` is what acknowledges it."""

    shard: int
    entry: str
    item: bytes
    deliveries: int


class InboxLag(NamedTuple):
    """`waiting`: not delivered or not acknowledged; `oldest_ms`: age of the oldest of them."""

    waiting: int
    dead: int
    oldest_ms: int


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


class Inbox(Protocol):
    """Shards of one tenant: at least once, with leases. One group of consumers."""

    async def deposit(self, tenant: Tenant, shard: int, items: Sequence[bytes]) -> bool:
        """In order, whole or not at all. False: full. Tells gateways where somebody waits (bus INBOX)."""
        ...

    async def take(
        self, tenant: Tenant, consumer: str, limit: int, lease_ms: int, waiter: GatewayId | None = None
    ) -> list[InboxItem]:
        """New items, and those whose lease ended. With `waiter`: that gateway is told of the next deposit."""
        ...

    async def leave(self, tenant: Tenant, waiter: GatewayId) -> None:
        """That gateway is not told of deposits any more."""
        ...

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int: ...

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int:
        """Their leases begin anew."""
        ...

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int:
        """To the dead letters."""
        ...

    async def dead(self, tenant: Tenant, limit: int) -> list[tuple[str, bytes, str]]:
        """(entry, item, reason), oldest first."""
        ...

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int:
        """Back into their shards; empty: all of them."""
        ...

    async def lag(self, tenant: Tenant) -> InboxLag: ...


__all__ = [
    "DUE_SHARDS",
    "Answer",
    "AskId",
    "AskInfo",
    "AskRefusal",
    "AskRefused",
    "AskStatus",
    "Deadlines",
    "Due",
    "Exchange",
    "Inbox",
    "InboxItem",
    "InboxLag",
    "InputAccepted",
    "InputRefusal",
    "InputRefused",
    "InputRequest",
    "OpenAsk",
    "OutboxItem",
    "Resolved",
    "SweepResult",
]
