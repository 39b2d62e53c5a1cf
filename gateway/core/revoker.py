"""What was revoked, known within seconds on every gateway: a notice says when to look, a short cache bounds its loss.

Owns the sweep that closes local connections with 4401 (U03). With Redis away the last known state counts.
"""

import asyncio
from dataclasses import dataclass

from gateway.core.hub import Hub
from gateway.core.tasks import TaskOwner
from gateway.domain.access.principal import Principal
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import Tenant
from gateway.ports import Clock, Directory, Revocations, StoreUnavailable

FRESH_SECONDS = 2.0
"""So old may an answer be; with the round of a second a revocation is seen within 5 s even if its notice is lost."""
ROUND_SECONDS = 1.0
FORGET_SECONDS = 60.0
"""Tenants that nobody asked for are forgotten."""


@dataclass(slots=True)
class _Known:
    revocations: Revocations
    read_at: float
    asked_at: float


class Revoker:
    """`run` for ever. Implements core.access.Revoked."""

    def __init__(self, hub: Hub, directory: Directory, owner: TaskOwner, clock: Clock) -> None:
        self._hub = hub
        self._directory = directory
        self._owner = owner
        self._clock = clock
        self._known: dict[Tenant, _Known] = {}

    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        """Raises StoreUnavailable only when nothing is known of the tenant yet."""
        now = self._clock()
        known = self._known.get(principal.tenant)
        if known is None or now - known.read_at > FRESH_SECONDS:
            known = await self._read(principal.tenant)
        known.asked_at = now
        return judges(known.revocations, principal, session)

    def revocations_changed(self, tenant: Tenant) -> None:
        """A notice came: read now, and close what it means."""
        self._owner.start("revocations", self._refresh([tenant]))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            await self.round()

    async def round(self) -> None:
        """Read again for the tenants of local connections, forget the others after a while."""
        now = self._clock()
        tenants = {connection.principal.tenant for connection in self._hub.connections}
        for tenant in [t for t, known in self._known.items() if now - known.asked_at > FORGET_SECONDS]:
            if tenant not in tenants:
                del self._known[tenant]
        stale = [t for t in tenants if t not in self._known or now - self._known[t].read_at > FRESH_SECONDS]
        await self._refresh(stale)

    async def _refresh(self, tenants: list[Tenant]) -> None:
        try:
            await asyncio.gather(*(self._read(tenant) for tenant in tenants))
        except StoreUnavailable:
            return  # the next round reads again
        self._sweep(set(tenants))

    async def _read(self, tenant: Tenant) -> _Known:
        known = self._known.get(tenant)
        now = self._clock()
        try:
            revocations = await self._directory.revocations(tenant)
        except StoreUnavailable:
            if known is None:
                raise
            return known
        fresh = self._known[tenant] = _Known(revocations, now, known.asked_at if known is not None else now)
        return fresh

    def _sweep(self, tenants: set[Tenant]) -> None:
        for connection in list(self._hub.connections):
            principal = connection.principal
            known = self._known.get(principal.tenant) if principal.tenant in tenants else None
            if known is not None and judges(known.revocations, principal, connection.session.ref.session):
                connection.begin_close(CloseCode.UNAUTHENTICATED, "revoked")


def judges(revocations: Revocations, principal: Principal, session: str | None) -> bool:
    """True: the token is refused. One without a time of issue counts as older than any revocation."""
    if principal.token_id is not None and principal.token_id in revocations.tokens:
        return True
    issued_at = principal.issued_at if principal.issued_at is not None else 0
    by_user = revocations.users.get(principal.user)
    by_session = revocations.sessions.get(session) if session is not None else None
    return any(at is not None and issued_at <= at for at in (by_user, by_session))


__all__ = ["Revoker", "judges"]
