"""Routes: which connection of which gateway a client has, its lease and its generation."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.capabilities import TEXT_ONLY, Capabilities
from gateway.domain.wire.cursor import Cursor, Line
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, SessionRef, UserId
from gateway.ports.log import Page
from gateway.ports.runs import Cut


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
    capabilities: Capabilities = TEXT_ONLY
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
    cuts: tuple[Cut, ...] = ()
    """Of this client, for retained runs."""
    asks: tuple[bytes, ...] = ()
    """Finished frames of open asks: announced at once by `ask_open`."""
    kept_from: int | None = None
    """Lowest seq of a kept push; a client that begins `live` gets those first."""


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
    quality: str = ""
    """`<level> <score>`, kept in the route."""


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
    capabilities: Capabilities = TEXT_ONLY
    quality: str = ""
    """As in RenewClient; empty: not judged yet, or by a gateway that does not."""


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


__all__ = [
    "ClaimOutcome",
    "ClaimRefusal",
    "ClaimRefused",
    "ClaimRequest",
    "Claimed",
    "HeadInfo",
    "Origin",
    "RenewClient",
    "RenewRequest",
    "RenewResult",
    "Renewal",
    "Renewed",
    "RouteInfo",
    "SessionInfo",
]
