"""The inbox as consumers see it: take under a lease, acknowledge, extend, bury, redrive; long polls woken by the bus.

Owns who may (the inbox is the whole tenant's) and its figures. Must never hand out an item without a lease. Called by
the inbox API and by webhooks.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Final, NamedTuple

import msgspec
import structlog

from gateway.core.attempts import Attempts
from gateway.core.waits import Waits
from gateway.domain.access.principal import Principal
from gateway.domain.access.rules import require_consume
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, Tenant
from gateway.ports import Clock, Inbox, InboxItem, InboxLag, StoreUnavailable
from gateway.ports.inbox import QUEUE_SHARDS_FROM
from gateway.settings import InboxSettings

log = structlog.get_logger()

MAX_WAIT_SECONDS: Final = 60.0
"""Of one request; below what proxies cut. The consumer asks again."""
LAG_SECONDS: Final = 5.0
"""So old may the gauges be."""
FORGET_SECONDS: Final = 600.0
"""Tenants whose items nobody asked for are not looked at any longer."""
MAX_TENANTS: Final = 200
"""Looked at for the gauges; the longest unused goes first."""
MAX_BURY_REASON: Final = 200
LATE: Final = "its deadline passed"
"""Why an item went to the dead letters."""
_MARK: Final = b'"expires_at":'


class _Deadline(msgspec.Struct):
    expires_at: int | None = None
    """Unix ms."""
    route: str = "other"
    """Version of the route table that set it."""


_decode_deadline = msgspec.json.Decoder(_Deadline).decode


class Letter(NamedTuple):
    """A dead one."""

    entry: str
    item: bytes
    reason: str


@dataclass(slots=True)
class InboxDesk:
    """One per gateway. Raises RelayError only: UNAVAILABLE, and FORBIDDEN of `check`."""

    inbox: Inbox
    attempts: Attempts
    measures: Measures
    gateway: GatewayId
    settings: InboxSettings
    clock: Clock
    wall_clock: Clock = time
    waits: Waits[Tenant] = field(default_factory=Waits)
    _used: dict[Tenant, float] = field(default_factory=dict)
    _waited: dict[Tenant, None] = field(default_factory=dict)
    """Where this gateway asked to be told of deposits."""
    _lags: dict[Tenant, InboxLag] = field(default_factory=dict)

    @staticmethod
    def check(principal: Principal) -> Tenant:
        """The tenant whose inbox it may serve. Raises RelayError FORBIDDEN."""
        require_consume(principal)
        return principal.tenant

    async def take(
        self,
        tenant: Tenant,
        consumer: str,
        limit: int,
        lease_seconds: float | None,
        wait_seconds: float,
        is_there: Callable[[], bool] = lambda: True,
        *,
        for_webhooks: bool = False,
    ) -> list[InboxItem]:
        """What there is, at most `limit`; when there is nothing, what comes within `wait_seconds`.

        Nothing is taken for a consumer that has left (`is_there`): it would keep the items from others for a lease.
        Items whose answer is lost come again when it ends. What is past its deadline goes to the dead letters; webhooks
        look at that themselves. RelayError BAD_REQUEST: out of the limits.
        """
        longest, most = self.settings.max_lease_seconds, self.settings.take_items
        lease_seconds = self.settings.lease_seconds if lease_seconds is None else lease_seconds
        if not 1 <= limit <= most:
            raise RelayError(ErrorCode.BAD_REQUEST, f"max must be 1 to {most}")
        if not 1 <= lease_seconds <= longest:
            raise RelayError(ErrorCode.BAD_REQUEST, f"lease_ms must be 1000 to {longest * 1000:.0f}")
        self._note_use(tenant)
        lease_ms = int(lease_seconds * 1000)
        seconds = min(max(0.0, wait_seconds), MAX_WAIT_SECONDS)
        with self.waits.waiting(tenant, self.clock, seconds) as wait:
            items: list[InboxItem] = []
            while is_there():
                waiter = None if wait.is_over else self.gateway
                if waiter is not None:
                    self._waited[tenant] = None
                items = await self.attempts.answer(
                    lambda waiter=waiter: self.inbox.take(  # type: ignore[misc]
                        tenant, consumer, limit, lease_ms, waiter, for_webhooks=for_webhooks
                    )
                )
                if not for_webhooks:
                    items = await self._in_time(tenant, items)
                if items or not await wait.next_look():
                    break
        self.measures.inbox_taken += len(items)
        self.measures.inbox_redelivered += sum(item.deliveries > 1 for item in items)
        return items

    async def pass_on(self, tenant: Tenant, item: InboxItem) -> None:
        """From the webhooks to the tenant's other consumers, then it is acknowledged. RelayError also when full."""
        shard = item.shard + QUEUE_SHARDS_FROM
        if not await self.attempts.answer(lambda: self.inbox.deposit(tenant, shard, (item.item,))):
            raise RelayError(ErrorCode.INBOX_FULL, "the queue is full", after_ms=2_000)
        await self.ack(tenant, [(item.shard, item.entry)])

    async def _in_time(self, tenant: Tenant, items: list[InboxItem]) -> list[InboxItem]:
        late: list[tuple[int, str]] = []
        versions: Counter[str] = Counter()
        now_ms = self.wall_clock() * 1000
        for item in items:
            if _MARK not in item.item:
                continue
            deadline = _deadline_of(item.item)
            if deadline.expires_at is not None and now_ms >= deadline.expires_at:
                late.append((item.shard, item.entry))
                versions[deadline.route] += 1
        if not late:
            return items
        await self.bury(tenant, late, LATE)
        counts = self.measures.route_expired
        for version, count in versions.items():
            counts[version if version in counts else "other"] += count
        return [item for item in items if (item.shard, item.entry) not in late]

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int:
        """How many were there; one that is gone was acknowledged, or buried, before."""
        count = await self.attempts.answer(lambda: self.inbox.ack(tenant, items))
        self.measures.inbox_acked += count
        return count

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int:
        """How many are still this consumer's; their leases begin anew."""
        return await self.attempts.answer(lambda: self.inbox.extend(tenant, consumer, items))

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int:
        reason = reason[:MAX_BURY_REASON]
        count = await self.attempts.answer(lambda: self.inbox.bury(tenant, items, reason))
        self.measures.inbox_buried += count
        return count

    async def dead(self, tenant: Tenant, limit: int) -> list[Letter]:
        self._note_use(tenant)
        letters = await self.attempts.answer(lambda: self.inbox.dead(tenant, limit))
        return [Letter(*letter) for letter in letters]

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int:
        count = await self.attempts.answer(lambda: self.inbox.redrive(tenant, entries))
        self.measures.inbox_redriven += count
        return count

    async def lag(self, tenant: Tenant) -> InboxLag:
        self._note_use(tenant)
        return await self.attempts.answer(lambda: self.inbox.lag(tenant))

    def on_deposit(self, tenant: Tenant) -> None:
        """A notice from the bus."""
        self.waits.notify(tenant)

    async def leave(self) -> None:
        """The gateway is about to stop: nobody is to tell it of deposits any more. Redis away: that ends by itself."""
        tenants, self._waited = self._waited, {}
        try:
            for tenant in tenants:
                await self.inbox.leave(tenant, self.gateway)
        except StoreUnavailable as exc:
            log.info("inbox_not_left", reason=exc.reason)

    # ---- figures -----------------------------------------------------------------------------------------------

    @property
    def known_lag(self) -> InboxLag:
        """Of all tenants lately served here, some seconds old."""
        lags = self._lags.values()
        return InboxLag(
            sum(lag.waiting for lag in lags),
            sum(lag.dead for lag in lags),
            max((lag.oldest_ms for lag in lags), default=0),
        )

    async def watch(self) -> None:
        """Read the figures, for ever."""
        while True:
            await asyncio.sleep(LAG_SECONDS)
            await self.read_lags()

    async def read_lags(self) -> None:
        """Redis away: the last ones count."""
        now = self.clock()
        self._used = {tenant: at for tenant, at in self._used.items() if now - at < FORGET_SECONDS}
        lags = {}
        try:
            for tenant in list(self._used):
                lags[tenant] = await self.inbox.lag(tenant)
        except StoreUnavailable as exc:
            log.debug("inbox_lag_not_read", reason=exc.reason)
            return
        self._lags = lags

    def _note_use(self, tenant: Tenant) -> None:
        self._used.pop(tenant, None)
        while len(self._used) >= MAX_TENANTS:
            del self._used[next(iter(self._used))]
        self._used[tenant] = self.clock()


def _deadline_of(item: bytes) -> _Deadline:
    try:
        return _decode_deadline(item)
    except msgspec.DecodeError:
        return _Deadline()  # somebody's text that looks like one


__all__ = ["LATE", "MAX_WAIT_SECONDS", "InboxDesk", "Letter"]
