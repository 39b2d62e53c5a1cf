"""What the core needs from outside, with the guarantees each implementation gives. Adapters implement, core calls.

All store calls are one attempt with a bounded wait; retries are the caller's. They raise StoreUnavailable only.
A cancelled call never disturbs another one's answer (failure catalogue R25).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.domain.access.principal import Principal
from gateway.domain.sessions.log_state import Fork as Fork  # noqa: PLC0414  re-exported
from gateway.domain.sessions.log_state import LogState as LogState  # noqa: PLC0414  re-exported
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor, Line
from gateway.domain.wire.entry import Item, LogEntry
from gateway.domain.wire.ids import (
    ClientId,
    ConnectionId,
    GatewayId,
    ProducerName,
    SessionId,
    SessionRef,
    Tenant,
    UserId,
)


class StoreUnavailable(Exception):
    """Redis did not answer, or refused for a reason that passes by itself (NOSCRIPT, OOM, READONLY, LOADING, ...).

    `outcome_unknown` is True when the command may have taken or may still take effect.
    """

    def __init__(self, reason: str, *, outcome_unknown: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.outcome_unknown = outcome_unknown


# ---- the log -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """Retained entries with seq > the one asked for, ascending, read in the same instant as `log`.

    Bounded by count and bytes (at least one entry when there is one). The last page ends at `log.head`.
    """

    log: LogState
    entries: tuple[LogEntry, ...]


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


class ItemResult(NamedTuple):
    """`seq` in the session. A duplicate names the seq it got first, or None when that left the window;
    `refused` is the code with which that number was finally refused earlier."""

    seq: int | None
    duplicate: bool
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    results: tuple[ItemResult, ...]
    line: Line
    head: int
    live: bool
    """A leased gateway has the session and PUBLISH reached a subscriber."""
    gateways: tuple[GatewayId, ...]
    """Whom the messages were published to: they get `heads` notices."""


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
    GONE = "gone"
    """The session was deleted."""


AppendOutcome = Appended | Expected | AppendRefused


class Registered(NamedTuple):
    """A new producer epoch; it fences every older one. Numbers start at 1."""

    epoch: int
    line: Line


# ---- routes ------------------------------------------------------------------------------------------------------


class Origin(StrEnum):
    """Where a claim's position came from, in the order of protocol.md 1."""

    CURSOR = "cursor"
    BARE_SEQ = "last_received_seq"
    ACKED = "acked"
    START = "start"
    LIVE = "live"
    CREATED = "created"
    """The claim made the session; whatever position was given belongs to another life."""


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    session: SessionRef
    gateway: GatewayId
    connection: ConnectionId
    client: ClientId
    may_create: bool
    """The caller's pattern covers the id. Otherwise the session must exist and be owned by `user`."""
    user: UserId
    cursor: Cursor | None = None
    bare_seq: int | None = None
    from_start: bool = False
    replaces: ConnectionId | None = None
    reclaims: int | None = None
    """The same socket again after `lost`: the generation of its first claim. No take-over counts; SUPERSEDED when
    another one, first claimed later, has a live route."""
    capabilities: str = ""
    retry_count: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """`page` is the first one after the position when that lies on the current line, else None: judge, then read."""

    generation: int
    log: LogState
    origin: Origin
    cursor: Cursor | None
    """The position given or found; None for `live`, `start` and `created`."""
    page: Page | None
    input_seq: int


class ClaimRefusal(StrEnum):
    NOT_FOUND = "not_found"
    """No such session, not the caller's, or deleted: all three answer alike (G11)."""
    TOO_MANY_CLIENTS = "too_many_clients"
    TAKEOVERS = "takeovers"
    SUPERSEDED = "superseded"
    """Only for a re-claim: another connection of the client owns a live route."""


@dataclass(frozen=True, slots=True)
class ClaimRefused:
    reason: ClaimRefusal
    after_ms: int = 0


ClaimOutcome = Claimed | ClaimRefused


class RenewClient(NamedTuple):
    client: ClientId
    connection: ConnectionId
    generation: int
    line: Line
    acked_seq: int | None
    """Highest seq acked on `line`; stored as the client's cursor."""


@dataclass(frozen=True, slots=True)
class RenewRequest:
    """All local clients of one session."""

    session: SessionRef
    gateway: GatewayId
    clients: tuple[RenewClient, ...]


class Renewal(StrEnum):
    OK = "ok"
    LOST = "lost"
    SUPERSEDED = "superseded"


class RenewResult(NamedTuple):
    outcome: Renewal
    generation: int
    """Differs from the request's when a newer connection was lost before it was live and this one is restored."""


@dataclass(frozen=True, slots=True)
class Renewed:
    """`log` is None when the session has no meta."""

    line: Line | None
    head: int
    results: tuple[RenewResult, ...]


@dataclass(frozen=True, slots=True)
class RouteInfo:
    client: ClientId
    gateway: GatewayId
    connection: ConnectionId
    generation: int
    lease_ms: int
    acked_cursor: str | None


@dataclass(frozen=True, slots=True)
class SessionInfo:
    log: LogState
    owner: UserId | None
    first_seq: int
    """First retained seq; head + 1 when none is."""
    retained_bytes: int
    last_timestamp_ms: int
    routes: tuple[RouteInfo, ...]
    is_deleted: bool = False


class HeadInfo(NamedTuple):
    """`line` is None when the session has no meta. `is_stale`: meta names another incarnation of the server."""

    line: Line | None
    head: int
    is_stale: bool


class LogStore(Protocol):
    """The log, its producers and its routes. Every call is atomic in Redis."""

    async def append(self, request: AppendRequest) -> AppendOutcome:
        """G2, G5. Appends due in one loop turn travel in one write, in the order of the calls."""
        ...

    async def register_producer(
        self, session: SessionRef, name: ProducerName, owner: UserId | None
    ) -> Registered | AppendRefused:
        """A new epoch, max(last + 1, Redis time in us). Makes the session when there is none. Refused: GONE."""
        ...

    async def consume_numbers(self, request: AppendRequest, code: str) -> AppendOutcome:
        """Record that the request's numbers were finally refused with `code`; writes no message."""
        ...

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """G3, G6: generation, head, first page and the notice to the superseded connection in one instant."""
        ...

    async def settle(self, session: SessionRef, client: ClientId, connection: ConnectionId, generation: int) -> bool:
        """A connection claimed with `replaces` is live: `previous` ends, told by MOVED. False: no longer the owner,
        nor the `previous` of the next one."""
        ...

    async def renew(self, requests: Sequence[RenewRequest]) -> list[Renewed]:
        """One pipelined pass. Pending acked cursors are stored."""
        ...

    async def release(self, session: SessionRef, gateway: GatewayId, client: RenewClient, *, was_live: bool) -> None:
        """Remove the route if connection and generation still own it (failure catalogue R12). Not yet live and it has a
        `previous`: that one owns the route again, and is told (RESTORED)."""
        ...

    async def page(self, session: SessionRef, after_seq: int, max_bytes: int) -> Page | None:
        """Entries above `after_seq` of the current line. None: no meta."""
        ...

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo]: ...

    async def info(self, session: SessionRef) -> SessionInfo | None: ...

    async def delete(self, session: SessionRef) -> bool:
        """Tombstone first, then the keys; DELETED notices to its gateways. False: there was none."""
        ...


# ---- the bus -----------------------------------------------------------------------------------------------------


class Bus(Protocol):
    """The gateway's own channel. At most once; order per sender kept."""

    async def run(self, channel: GatewayId, listener: "BusListener") -> None:
        """Subscribe, deliver, re-subscribe with full jitter, for ever. Returns only by cancellation."""
        ...

    def reset(self, reason: str) -> None:
        """Drop the current link (it was found dead) and make a new one."""
        ...

    def publish(self, gateway: GatewayId, message: bytes) -> None:
        """Fire and forget through the append connection, after what was sent there before."""
        ...


class BusListener(Protocol):
    """Called from the reading protocol itself: must not block, must not raise."""

    def on_subscribed(self) -> None:
        """SUBSCRIBE is confirmed: from here on messages arrive."""
        ...

    def on_messages(self, messages: list[bytes]) -> None:
        """All messages that one read brought, in order."""
        ...

    def on_down(self, reason: str) -> None: ...


# ---- members, users, tickets, revocations ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GatewayRecord:
    """What a gateway says of itself under `rr:gw:<id>`."""

    gateway: GatewayId
    address: str
    version: str
    state: str
    connections: int
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class Revocations:
    """What a tenant revoked: user, session or token id -> Unix seconds; tokens issued at or before it are refused."""

    users: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)


class Directory(Protocol):
    """Small records beside the sessions."""

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> None: ...

    async def withdraw(self, gateway: GatewayId) -> None: ...

    async def gateways(self) -> list[GatewayRecord]: ...

    async def note_user_session(self, tenant: Tenant, user: UserId, session: SessionId, lease_seconds: float) -> None:
        """Written before the claim; readers verify."""
        ...

    async def user_sessions(self, tenant: Tenant, user: UserId) -> list[SessionId]: ...

    async def put_ticket(self, ticket: str, claims: bytes, ttl_seconds: float) -> None: ...

    async def take_ticket(self, ticket: str) -> bytes | None:
        """One use: the second caller gets None."""
        ...

    async def revoke(self, tenant: Tenant, what: str, ident: str, at_seconds: int, ttl_seconds: int) -> None:
        """`what` is user, session or token. Tells every gateway by REVOKED."""
        ...

    async def revocations(self, tenant: Tenant) -> Revocations: ...


class Authenticator(Protocol):
    """Tokens to principals, by keys that are known here."""

    def authenticate(self, token: str) -> Principal:
        """Raises RelayError UNAUTHENTICATED, one and the same for every token that is not accepted (U01)."""
        ...


# ---- one client's socket -----------------------------------------------------------------------------------------


class Link(Protocol):
    """One client's socket as the core sees it. Nothing here waits for a client, but `drained`."""

    def write(self, frames: bytes) -> None:
        """Prebuilt WebSocket frames, one or many, whole. After the end of the link: nothing happens."""
        ...

    def unsent_bytes(self) -> int:
        """What the kernel has not taken yet."""
        ...

    async def drained(self) -> None:
        """Returns when the write buffer is below its low mark or the link is closed."""
        ...

    def ping(self, nonce: bytes) -> None: ...

    def idle_seconds(self) -> float | None:
        """Seconds since the kernel last received bytes from the peer, also of an unfinished frame. None: unknown."""
        ...

    def close(self, code: CloseCode, reason: str) -> None:
        """Start the close handshake once; the link ends within its close time-out whatever the peer does."""
        ...


Clock = Callable[[], float]
"""Monotonic seconds."""
