"""Who may do what here: makes principals from tokens and tickets, decides from the token first, then asks Redis.

Must never tell apart sessions that do not exist, are not the caller's, or were deleted (G11), nor let a token reach a
log or an error. Called by the HTTP handlers and by the WebSocket endpoint.
"""

import dataclasses
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from gateway.domain.access.principal import EVERYBODY, Principal, Scope
from gateway.domain.access.rules import not_found, require_publish, require_scope, require_subscribe
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef
from gateway.ports import Authenticator, Directory, LogStore, SessionInfo
from gateway.settings import AuthSettings

_encode = msgspec.json.Encoder().encode
_ticket_decoder = msgspec.json.Decoder(Principal)
_MAX_TICKET_CHARS = 128


class Revoked(Protocol):
    """What was revoked (core/revoker.py)."""

    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        """Of the principal's token as a whole, or for this session. Raises StoreUnavailable when it cannot be known."""
        ...


class Ticket(NamedTuple):
    ticket: str
    expires_in_seconds: float


@dataclass(frozen=True, slots=True)
class Access:
    """One per gateway. `authenticator` None: `auth.mode` is `none`, everybody is the same user."""

    authenticator: Authenticator | None
    revoked: Revoked
    directory: Directory
    store: LogStore
    settings: AuthSettings
    wall_clock: Callable[[], float]
    """Unix seconds."""

    async def authenticate(self, token: str | None) -> Principal:
        """Raises RelayError UNAUTHENTICATED: the same for every bad, missing, expired or revoked token."""
        if self.authenticator is None:
            return EVERYBODY
        if token is None:
            raise RelayError(ErrorCode.UNAUTHENTICATED, "credentials are missing: send a token")
        principal = self.authenticator.authenticate(token)
        if await self.revoked.is_revoked(principal, None):
            raise unauthenticated()
        return principal

    async def redeem(self, ticket: str) -> Principal:
        """The principal that a ticket stands for; it is good for one use. Raises UNAUTHENTICATED."""
        if not 1 <= len(ticket) <= _MAX_TICKET_CHARS or not ticket.isascii():
            raise unauthenticated()
        claims = await self.directory.take_ticket(ticket)
        if claims is None:
            raise unauthenticated()
        try:
            principal = _ticket_decoder.decode(claims)
        except msgspec.DecodeError:
            raise unauthenticated() from None
        is_expired = principal.expires_at is not None and principal.expires_at <= self.wall_clock()
        if is_expired or await self.revoked.is_revoked(principal, None):
            raise unauthenticated()
        return principal

    async def issue_ticket(self, principal: Principal, session: SessionId | None) -> Ticket:
        """For one connect, with the rights of `principal`, or only for one session of them."""
        require_scope(principal, Scope.SUBSCRIBE)
        if session is not None:
            require_subscribe(principal, session)
            principal = dataclasses.replace(principal, only_session=session)
        ticket = secrets.token_urlsafe(32)
        await self.directory.put_ticket(ticket, _encode(principal), self.settings.ticket_seconds)
        return Ticket(ticket, self.settings.ticket_seconds)

    async def revoke(self, principal: Principal, what: str, ident: str) -> None:
        """Refuse from now on what was issued until now: `what` is user, session or token, of the principal's tenant."""
        require_scope(principal, Scope.ADMIN)
        now = int(self.wall_clock())
        await self.directory.revoke(principal.tenant, what, ident, now, self.settings.longest_token_seconds)

    async def subscriber(self, principal: Principal, session: SessionId) -> SessionRef:
        """The session, when the token may subscribe to it. The claim then asks `principal.may_create` and the owner."""
        require_subscribe(principal, session)
        return await self._reachable(principal, session)

    async def member(self, principal: Principal, session: SessionId) -> SessionRef:
        """The session, when the principal may connect to it now: what a client does without a connection."""
        ref = await self.subscriber(principal, session)
        await self.check_there(ref, principal)
        return ref

    async def check_there(self, ref: SessionRef, principal: Principal) -> None:
        """What a claim would find: raises NOT_FOUND when it is not there for this principal, or deleted."""
        info = await self.store.info(ref)
        may_create = principal.may_create(ref.session)
        if info is None:
            if not may_create:
                raise not_found()
        elif info.is_deleted or not (may_create or info.owner == principal.user):
            raise not_found()

    async def publisher(self, principal: Principal, session: SessionId) -> SessionRef:
        """The session, when the principal may publish into it; without patterns only one that it owns."""
        require_publish(principal, session)
        ref = await self._reachable(principal, session)
        if not principal.may_create(session):
            await self._owned(principal, ref)
        return ref

    async def info(self, principal: Principal, session: SessionId) -> SessionInfo:
        """What is known of a session that the principal may publish into. Raises NOT_FOUND."""
        require_publish(principal, session)
        ref = await self._reachable(principal, session)
        if principal.may_create(session):
            return _existing(await self.store.info(ref))
        return await self._owned(principal, ref)

    async def _reachable(self, principal: Principal, session: SessionId) -> SessionRef:
        if await self.revoked.is_revoked(principal, session):
            raise not_found()
        return SessionRef(principal.tenant, session)

    async def _owned(self, principal: Principal, ref: SessionRef) -> SessionInfo:
        info = _existing(await self.store.info(ref))
        if info.owner != principal.user:
            raise not_found()
        return info


def unauthenticated() -> RelayError:
    """The one answer for every token that is not accepted (failure catalogue U01)."""
    return RelayError(ErrorCode.UNAUTHENTICATED, "the credentials are not valid")


def _existing(info: SessionInfo | None) -> SessionInfo:
    if info is None or info.is_deleted:
        raise not_found()
    return info


__all__ = ["Access", "Revoked", "Ticket", "unauthenticated"]
