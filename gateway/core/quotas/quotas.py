"""Who may append how much: a tenant by this gateway's share of its rates, a session by its own.

Must never wait, nor ask Redis: gateways tell each other once a second (exchange.py). A refusal comes before anything
is sent, so it consumes no producer's number. Called by ingest, tokens, asks and inputs; streams have a Meter.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import Any, Final

from gateway.core.quotas.held import SessionHeld, TenantHeld
from gateway.core.quotas.meter import Meter
from gateway.core.quotas.presence import Presence, Present
from gateway.core.quotas.refusals import exceeded
from gateway.domain.measures import Measures
from gateway.domain.quotas import Bucket, Limits, Quota, SharedBucket, TenantUse, share_of
from gateway.domain.wire.ids import SessionKey, SessionRef, Tenant
from gateway.ports import Appended, Clock
from gateway.settings import QuotaSettings

MAX_TENANTS: Final = 4_000
"""Whose rates are kept; the longest unused goes, and its bucket is full again by then or nearly."""
MAX_SESSIONS: Final = 20_000
MAX_TOLD: Final = 500
"""Tenants that the others are told of, those that use most of their quotas first."""
TENANTS_A_TURN: Final = 500
"""Looked at before others have a turn: about a millisecond."""
UNHEARD_PART: Final = 0.25
"""Of each rate, before the others were heard for the first time: there may be some."""


class Quotas:
    """One per gateway; there is none while nobody is limited (`of`)."""

    def __init__(self, settings: QuotaSettings, measures: Measures, clock: Clock) -> None:
        self._settings = settings
        self._limits = settings.default_limits
        self._named = {Tenant(name): settings.limits_of(name) for name in settings.tenants}
        self._limits_all = not self._limits.is_empty
        self.measures = measures
        self.clock = clock
        self.presence = Presence(self.limits_of, measures)
        self.on_short: Callable[[], None] = _nobody_asks
        """Called when somebody had to wait for a tenant's rate: the others may have some to spare."""
        self._tenants: dict[Tenant, TenantHeld] = {}
        self._sessions: dict[SessionKey, SessionHeld] = {}
        self._part = UNHEARD_PART
        self._elsewhere: dict[Tenant, list[TenantUse]] = {}
        self._gateways = 1
        self._learned = 0
        """How often the others were heard: what a tenant is granted is worked out when it is next asked for."""

    @classmethod
    def of(cls, settings: QuotaSettings, measures: Measures, clock: Clock) -> "Quotas | None":
        return cls(settings, measures, clock) if settings.is_on else None

    def limits_of(self, tenant: Tenant) -> Limits:
        return self._named.get(tenant, self._limits)

    # ---- appends -----------------------------------------------------------------------------------------------

    def check_append(self, ref: SessionRef, count: int, size_bytes: int, *, is_person: bool = False) -> None:
        """Charges what is about to be appended, or raises RelayError QUOTA_EXCEEDED and charges nothing.

        `is_person`: what a user says goes one burst deeper into debt than what producers say: agents wait for people.
        """
        limits = self.limits_of(ref.tenant)
        if not limits.limits_appends and ref.tenant not in self._named:
            return
        now = self.clock()
        tenant = self._tenant(ref.tenant, limits, now)
        session = self._session(ref.key, limits) if limits.limits_session else None
        for quota, bucket, cost in _buckets(tenant, session, count, size_bytes):
            if wait := _wait(bucket, cost, now, is_urgent=is_person):
                if isinstance(bucket, SharedBucket):
                    self._note_short(bucket)
                self.measures.quota_refusals[quota.value] += 1
                raise exceeded(quota, getattr(limits, quota.value), wait)
        self._charge(tenant, session, count, size_bytes, now)

    def saw(self, ref: SessionRef, appended: Appended) -> None:
        """What an append answered: others may have written to the session as well."""
        session = self._sessions.get(ref.key)
        if session is not None:
            session.saw(appended, self.clock())

    # ---- streams -----------------------------------------------------------------------------------------------

    def meter(self, ref: SessionRef) -> Meter | None:
        """Of one open ingest. None: nothing limits it."""
        is_metered = self.limits_of(ref.tenant).limits_appends or ref.tenant in self._named
        return Meter(self, ref) if is_metered else None

    def charge(self, ref: SessionRef, count: int, size_bytes: int) -> None:
        """What was read already, whether or not there is enough: then the next one waits."""
        limits, now = self.limits_of(ref.tenant), self.clock()
        session = self._session(ref.key, limits) if limits.limits_session else None
        self._charge(self._tenant(ref.tenant, limits, now), session, count, size_bytes, now)

    def is_in_debt(self, ref: SessionRef) -> bool:
        """A stream may read no more before it had its turn."""
        return any(held.debt_seconds(True) for held in self._held(ref))

    async def wait(self, ref: SessionRef) -> None:
        """The turn of a stream: of its session, then of its tenant."""
        self.measures.quota_waits += 1
        for held in self._held(ref):
            await held.turns.wait()

    def _held(self, ref: SessionRef) -> Iterator[SessionHeld | TenantHeld]:
        limits = self.limits_of(ref.tenant)
        if limits.limits_session:
            yield self._session(ref.key, limits)
        yield self._tenant(ref.tenant, limits, self.clock())

    # ---- what gateways tell each other -------------------------------------------------------------------------

    async def usage(self, *, with_presence: bool = True) -> dict[str, TenantUse]:
        """For the others; asks each tenant for its demand since the last time. Others have turns in between."""
        now = self.clock()
        rows: list[tuple[float, Tenant, TenantUse]] = []
        there = {*self._tenants, *self.presence.tenants}
        for number, tenant in enumerate(there if self._limits_all else there & self._named.keys(), 1):
            if not number % TENANTS_A_TURN:
                await asyncio.sleep(0)
                now = self.clock()
            use = self._use(tenant, now)
            if not with_presence:
                use = use._replace(connections=0, sessions=0)
            if (part := _part_of(use, self.limits_of(tenant))) > 0:
                rows.append((part, tenant, use))
        return {tenant: use for _, tenant, use in nlargest(MAX_TOLD, rows, key=itemgetter(0))}

    def learn(self, others: Iterable[Mapping[str, TenantUse]]) -> None:
        """What the others told: shares are counted anew."""
        heard: dict[Tenant, list[TenantUse]] = {}
        self._gateways = 1
        for told in others:
            self._gateways += 1
            for tenant, use in told.items():
                heard.setdefault(Tenant(tenant), []).append(use)
        self._part = 1 / self._gateways
        self._elsewhere = heard
        self.presence.learn(
            {
                tenant: Present(sum(use.connections for use in uses), sum(use.sessions for use in uses))
                for tenant, uses in heard.items()
            }
        )
        self._learned += 1
        now = self.clock()
        for tenant, held in self._tenants.items():
            if held.is_short(now):  # it fills by the new share from now on; the others are full, or nearly
                self._grant(tenant, held, now)

    def report(self) -> list[dict[str, Any]]:
        """Usage of the tenants that the configuration names, here and over all gateways, for an operator."""
        return [self._row(tenant, limits) for tenant, limits in self._named.items()]

    def named_usage(self) -> Iterator[tuple[Tenant, TenantUse]]:
        """Of this gateway, for its metrics."""
        for tenant in self._named:
            yield tenant, self._told(tenant)

    # ---- inside ------------------------------------------------------------------------------------------------

    def _charge(self, tenant: TenantHeld, session: SessionHeld | None, count: int, size_bytes: int, now: float) -> None:
        if tenant.appends is not None:
            tenant.appends.charge(count, now)
        if tenant.bytes is not None:
            tenant.bytes.charge(size_bytes, now)
        if session is not None:
            session.charge(count, size_bytes, now)

    def _tenant(self, name: Tenant, limits: Limits, now: float) -> TenantHeld:
        tenant = self._tenants.pop(name, None)
        if tenant is None:
            while len(self._tenants) >= MAX_TENANTS:
                del self._tenants[next(iter(self._tenants))]
            burst, is_watched = self._settings.burst_seconds, name in self._named
            tenant = TenantHeld(limits, burst, self._part, self.clock, self._note_short, is_watched=is_watched)
            if name not in self._elsewhere:
                tenant.learned = self._learned
        if tenant.learned != self._learned:
            self._grant(name, tenant, now)
        self._tenants[name] = tenant
        return tenant

    def _grant(self, name: Tenant, tenant: TenantHeld, now: float) -> None:
        tenant.learned = self._learned
        uses = self._elsewhere.get(name, [])
        silent = self._gateways - 1 - len(uses)
        for bucket, others in (
            (tenant.appends, [use.appends for use in uses]),
            (tenant.bytes, [use.bytes for use in uses]),
        ):
            if bucket is not None:
                bucket.grant(share_of(bucket.whole, bucket.told, others, silent), now)

    def _session(self, key: SessionKey, limits: Limits) -> SessionHeld:
        session = self._sessions.pop(key, None)
        if session is None:
            while len(self._sessions) >= MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            session = SessionHeld(limits, self._settings.burst_seconds, self.clock)
        self._sessions[key] = session
        return session

    def _note_short(self, bucket: SharedBucket) -> None:
        if self._gateways > 1 and not bucket.asks_for_all:
            self.on_short()

    def _use(self, tenant: Tenant, now: float) -> TenantUse:
        held, present = self._tenants.get(tenant), self.presence.here(tenant)
        appends = 0.0 if held is None or held.appends is None else held.appends.demand(now)
        size = 0.0 if held is None or held.bytes is None else held.bytes.demand(now)
        return TenantUse(present.connections, present.sessions, appends, size)

    def _told(self, tenant: Tenant) -> TenantUse:
        held, present = self._tenants.get(tenant), self.presence.here(tenant)
        appends = 0.0 if held is None or held.appends is None else held.appends.used
        size = 0.0 if held is None or held.bytes is None else held.bytes.used
        return TenantUse(present.connections, present.sessions, appends, size)

    def _row(self, tenant: Tenant, limits: Limits) -> dict[str, Any]:
        here, elsewhere = self._told(tenant), self._elsewhere.get(tenant, [])
        figures = {
            Quota.CONNECTIONS: (here.connections, sum(use.connections for use in elsewhere)),
            Quota.SESSIONS: (here.sessions, sum(use.sessions for use in elsewhere)),
            Quota.APPENDS: (here.appends, sum(use.appends for use in elsewhere)),
            Quota.BYTES: (here.bytes, sum(use.bytes for use in elsewhere)),
        }
        row: dict[str, Any] = {"tenant": tenant}
        for quota, (used, others) in figures.items():
            row[quota.value] = {
                "here": round(used, 1),
                "everywhere": round(used + others, 1),
                "limit": getattr(limits, quota.value),
            }
        for quota in (Quota.SESSION_APPENDS, Quota.SESSION_BYTES):
            row[quota.value] = {"limit": getattr(limits, quota.value)}
        return row


def _buckets(
    tenant: TenantHeld, session: SessionHeld | None, count: int, size_bytes: int
) -> Iterator[tuple[Quota, Bucket | SharedBucket, int]]:
    if tenant.appends is not None:
        yield Quota.APPENDS, tenant.appends, count
    if tenant.bytes is not None:
        yield Quota.BYTES, tenant.bytes, size_bytes
    if session is not None and session.appends is not None:
        yield Quota.SESSION_APPENDS, session.appends, count
    if session is not None and session.bytes is not None:
        yield Quota.SESSION_BYTES, session.bytes, size_bytes


def _wait(bucket: Bucket | SharedBucket, cost: float, now: float, *, is_urgent: bool = False) -> float:
    if isinstance(bucket, SharedBucket):
        return bucket.wait_seconds(cost, now, is_urgent=is_urgent)
    return bucket.wait_seconds(cost, now, bucket.capacity if is_urgent else 0.0)


def _part_of(use: TenantUse, limits: Limits) -> float:
    """Of the quota that it has used most of; what has no quota counts little, but it is told."""
    figures = (
        (use.connections, limits.connections),
        (use.sessions, limits.sessions),
        (use.appends, limits.appends_per_second),
        (use.bytes, limits.bytes_per_second),
    )
    return max(used / (limit or 1e12) for used, limit in figures)


def _nobody_asks() -> None:
    """Without other gateways nobody has anything to spare."""


__all__ = ["MAX_SESSIONS", "MAX_TENANTS", "MAX_TOLD", "Quotas"]
