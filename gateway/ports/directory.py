"""Members, users, tickets, revocations: small records beside the sessions; and who a token is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gateway.domain.access.principal import Principal
from gateway.domain.wire.ids import GatewayId, SessionId, Tenant, UserId

SERVING: Final = "serving"
DRAINING: Final = "draining"


@dataclass(frozen=True, slots=True)
class GatewayRecord:
    """What a gateway says of itself under `rr:gw:<id>`. Versions run side by side: newer fields have defaults."""

    gateway: GatewayId
    address: str
    version: str
    state: str
    """SERVING or DRAINING."""
    connections: int
    started_at_ms: int
    open_runs: int = 0
    """Streams of producers that come in here."""
    rtt_p50_ms: float | None = None
    """Of the pings answered in the last minute; None: there were none."""
    rtt_p99_ms: float | None = None
    behind_messages: int = 0
    """In logs and not yet sent, over all connections."""
    unsent_bytes: int = 0
    admission: str = "open"
    """Whom its watermarks let in: open, no_new, none."""
    routes: str = ""
    """Version of the route table in force; both with a plus while a canary runs."""
    is_rtt_rising: bool = False
    """Round trips get longer than they were: the early warning of its network."""

    @property
    def is_serving(self) -> bool:
        return self.state == SERVING


@dataclass(frozen=True, slots=True)
class Revocations:
    """What a tenant revoked: user, session or token id -> Unix seconds; tokens issued at or before it are refused."""

    users: dict[str, int] = field(default_factory=dict)
    sessions: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)


class Directory(Protocol):
    """Small records beside the sessions."""

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> bool:
        """False: the gateway was not among the members: it is the first time, or Redis has forgotten it."""
        ...

    async def withdraw(self, gateway: GatewayId) -> None: ...

    async def gateways(self) -> list[GatewayRecord]:
        """All that live, those that drain too. One call for each: for people and rare events."""
        ...

    async def records_of(self, names: Sequence[GatewayId]) -> list[GatewayRecord]:
        """Of those that live still. One call for each."""
        ...

    async def serving(self) -> list[GatewayId]:
        """Those that take new clients. One call."""
        ...

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


__all__ = ["DRAINING", "SERVING", "Authenticator", "Directory", "GatewayRecord", "Revocations"]
