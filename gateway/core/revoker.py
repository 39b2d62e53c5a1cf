"""What was revoked, known within seconds on every gateway: a notice says when to look, a short cache bounds its loss.

Owns the sweep that closes local connections with 4401 (U03). With Redis away the last known state counts.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import structlog

from gateway.core.hub import Hub
from gateway.core.tasks import TaskOwner
from gateway.domain.access.principal import Principal
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import Tenant
from gateway.ports import Clock, Directory, Revocations, StoreUnavailable

log = structlog.get_logger()

FRESH_SECONDS = 2.0
"""So old may an answer be; with the rounds a revocation is seen within 5 s even if its notice is lost."""
PATIENCE_SECONDS = 0.25
"""So long a read that somebody waits for may take where something is known: its server may be away, and others not."""
ROUND_SECONDS = 1.0
FORGET_SECONDS = 60.0
"""Tenants that nobody asked for are forgotten."""
SWEEP_A_TURN = 1_000
"""Connections judged in one turn of the loop."""


@dataclass(slots=True)
class _Known:
    revocations: Revocations
    read_at: float
    """When the read began: what was revoked later may be missing."""
    asked_at: float


class Revoker:
    """`run` for ever. Implements core.access.Revoked."""

    def __init__(self, hub: Hub, directory: Directory, owner: TaskOwner, clock: Clock) -> None:
        self._hub = hub
        self._directory = directory
        self._owner = owner
        self._clock = clock
        self._known: dict[Tenant, _Known] = {}
        self._reads: dict[Tenant, asyncio.Task[_Known | None]] = {}
        self._began: dict[Tenant, float] = {}
        """When each of these reads began."""
        self._changed: set[Tenant] = set()
        self._is_taking_changes = False

    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        """Raises StoreUnavailable only when nothing is known of the tenant yet."""
        tenant = principal.tenant
        known = self._known.get(tenant)
        if known is None or self._clock() - known.read_at > FRESH_SECONDS:
            reading = self._read(tenant)
            if known is None:
                known = await asyncio.shield(reading)
            elif (left := PATIENCE_SECONDS - (self._clock() - self._began[tenant])) > 0:
                await asyncio.wait((reading,), timeout=left)
                known = self._known.get(tenant, known)
            if known is None:
                raise StoreUnavailable("what was revoked cannot be read", outcome_unknown=False)
        known.asked_at = self._clock()
        return judges(known.revocations, principal, session)

    def revocations_changed(self, tenant: Tenant) -> None:
        """A notice came: read now, and close what it means."""
        self._changed.add(tenant)
        if not self._is_taking_changes:
            self._is_taking_changes = True
            self._owner.start("revocations", self._take_changes())

    async def run(self) -> None:
        """Rounds, for ever."""
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
        stale = [t for t in tenants if t not in self._known or now - self._known[t].read_at >= FRESH_SECONDS]
        await self._refresh(stale)

    async def _take_changes(self) -> None:
        try:
            while self._changed:
                changed, self._changed = self._changed, set()
                # A read that is under way may be older than the notice.
                await _ended(self._reads[tenant] for tenant in changed if tenant in self._reads)
                await self._refresh(changed)
        finally:
            self._is_taking_changes = False

    async def _refresh(self, tenants: Iterable[Tenant]) -> None:
        tenants = set(tenants)
        await _ended(map(self._read, tenants))
        await self._sweep(tenants)

    def _read(self, tenant: Tenant) -> "asyncio.Task[_Known | None]":
        """One read at a time for a tenant, however many ask. None: it failed, and nothing was known before."""
        reading = self._reads.get(tenant)
        if reading is None:
            self._began[tenant] = self._clock()
            reading = self._reads[tenant] = self._owner.start("revocations", self._load(tenant))
        return reading

    async def _load(self, tenant: Tenant) -> _Known | None:
        began_at = self._clock()
        try:
            revocations = await self._directory.revocations(tenant)
        except StoreUnavailable as exc:
            log.info("revocations_not_read", reason=exc.reason)
            return self._known.get(tenant)
        finally:
            del self._reads[tenant], self._began[tenant]
        before = self._known.get(tenant)
        asked_at = began_at if before is None else before.asked_at
        known = self._known[tenant] = _Known(revocations, began_at, asked_at)
        return known

    async def _sweep(self, tenants: set[Tenant]) -> None:
        known = {tenant: self._known[tenant].revocations for tenant in tenants if tenant in self._known}
        revoked = {tenant: it for tenant, it in known.items() if it.users or it.sessions or it.tokens}
        if not revoked:
            return
        for place, connection in enumerate(list(self._hub.connections), start=1):
            revocations = revoked.get(connection.principal.tenant)
            if revocations is not None and judges(revocations, connection.principal, connection.session.ref.session):
                connection.begin_close(CloseCode.UNAUTHENTICATED, "revoked")
            if not place % SWEEP_A_TURN:
                await asyncio.sleep(0)


async def _ended(tasks: "Iterable[asyncio.Task[_Known | None]]") -> None:
    pending = list(tasks)
    if pending:
        await asyncio.wait(pending)


def judges(revocations: Revocations, principal: Principal, session: str | None) -> bool:
    """True: the token is refused. One without a time of issue counts as older than any revocation."""
    if principal.token_id is not None and principal.token_id in revocations.tokens:
        return True
    issued_at = principal.issued_at if principal.issued_at is not None else 0
    by_user = revocations.users.get(principal.user)
    by_session = revocations.sessions.get(session) if session is not None else None
    return any(at is not None and issued_at <= at for at in (by_user, by_session))


__all__ = ["FRESH_SECONDS", "ROUND_SECONDS", "Revoker", "judges"]
