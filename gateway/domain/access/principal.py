"""Principal: who a connection or a request speaks for, as a verified token or ticket says."""

from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.access.patterns import check_patterns, matches_any
from gateway.domain.wire.ids import DEFAULT_TENANT, SessionId, Tenant, UserId, check_id


class Scope(StrEnum):
    """What a token is good for. None contains another."""

    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"
    CONSUME = "consume"
    """The tenant's inbox: what clients of all its sessions send to agents."""
    ADMIN = "admin"


ALL_SCOPES = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Principal:
    """Verified, immutable. Raises ValueError (InvalidId, InvalidPattern) when a part is out of its limits."""

    tenant: Tenant
    user: UserId
    scopes: frozenset[Scope]
    patterns: tuple[str, ...] | None
    """Sessions that the token covers. None: those whose owner is `user`, and only those."""
    token_id: str | None = None
    issued_at: int | None = None
    """Unix seconds."""
    expires_at: int | None = None
    """Unix seconds; None only without authentication."""
    only_session: SessionId | None = field(default=None)
    """A ticket may be bound to one session, whatever else its token covers."""

    def __post_init__(self) -> None:
        check_id(self.tenant, "tenant")
        check_id(self.user, "user")
        if self.token_id is not None:
            check_id(self.token_id, "token id", max_bytes=256)
        if self.patterns is not None:
            check_patterns(self.patterns)

    def has(self, scope: Scope) -> bool:
        return scope in self.scopes

    def may_reach(self, session: str) -> bool:
        """False: for this principal the session does not exist. True without patterns: only if `user` owns it."""
        if self.only_session is not None and session != self.only_session:
            return False
        return self.patterns is None or matches_any(self.patterns, session)

    def may_create(self, session: str) -> bool:
        """A pattern covers the id: the owner does not matter, and the principal may bring the session into being."""
        return self.patterns is not None and self.may_reach(session)

    @property
    def covers_all(self) -> bool:
        """Every session of the tenant."""
        return self.patterns is not None and "*" in self.patterns and self.only_session is None

    def is_same_user(self, other: "Principal") -> bool:
        """A connection may renew its token in band only with one of the same user (failure catalogue U03)."""
        return (self.tenant, self.user) == (other.tenant, other.user)


EVERYBODY = Principal(DEFAULT_TENANT, UserId("anonymous"), ALL_SCOPES, ("*",))
"""Who everyone is with `auth.mode: none`."""


__all__ = ["ALL_SCOPES", "EVERYBODY", "Principal", "Scope"]
