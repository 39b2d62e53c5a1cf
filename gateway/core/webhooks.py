"""Brings inbox items to webhook receivers: one consumer a tenant, the items of a session one after the other (G12).

An item is acknowledged when its receiver said so, else it goes to the dead letters after bounded attempts. One gateway
at a time does it for a tenant (preference only). Must never hold more items than it renews the leases of.
"""

import asyncio
import random
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from time import time
from typing import Final

import msgspec
import structlog

from gateway.core.inbox import LATE, InboxDesk
from gateway.core.routing.lane_turns import LaneTurns
from gateway.core.routing.plans import Head, Plan, TableFor, decode_head, plan_for, shipped_table
from gateway.core.sweeper import Preference
from gateway.core.tasks import TaskOwner
from gateway.domain.exchange.trace import trace_id
from gateway.domain.measures import Measures
from gateway.domain.routing.table import Retry
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import GatewayId, Tenant
from gateway.ports import Clock, InboxItem, PostOutcome, WebhookPoster
from gateway.settings import Receiver, WebhookSettings

log = structlog.get_logger()

HELD_ITEMS: Final = 64
"""Of one tenant: taken and not yet acknowledged."""
LEASE_SECONDS: Final = 30.0
"""A gateway that died holds its items so long."""
EXTEND_SECONDS: Final = 10.0
MAX_REMEMBERED: Final = 10_000
"""Ids of delivered items of one tenant; about 1 MiB."""
WAIT_SECONDS: Final = 20.0
"""Of one long poll."""
PAUSE_SECONDS: Final = 1.0
"""After a failure of Redis, and between two looks whether we are preferred."""


@dataclass(frozen=True, slots=True)
class _Letter:
    item: InboxItem
    head: Head

    @property
    def place(self) -> tuple[int, str]:
        return self.item.shard, self.item.entry


@dataclass(slots=True)
class Webhooks:
    """One per gateway. `start` once; does nothing without receivers."""

    desk: InboxDesk
    poster: WebhookPoster
    peers: Preference
    owner: TaskOwner
    measures: Measures
    gateway: GatewayId
    settings: WebhookSettings
    rng: random.Random
    table_for: TableFor = shipped_table
    wall_clock: Clock = time

    def start(self) -> None:
        """A forever-task for each tenant that has receivers."""
        tenants = dict.fromkeys(tenant for receiver in self.settings.receivers for tenant in receiver.tenants)
        for tenant in tenants:
            courier = _Courier(self, Tenant(tenant))
            self.owner.forever("webhooks", courier.run())
            self.owner.forever("webhook-leases", courier.keep_leases())


@dataclass(slots=True)
class _Courier:
    """Of one tenant."""

    hooks: Webhooks
    tenant: Tenant
    lanes: dict[str, deque[_Letter]] = field(default_factory=dict)
    """Session -> what waits for its turn; the first one is under way."""
    done: OrderedDict[tuple[str, int], None] = field(default_factory=OrderedDict)
    """Items that were delivered from here: a repeat need not bother the receiver."""
    room: asyncio.Condition = field(default_factory=asyncio.Condition)
    turns: LaneTurns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = LaneTurns(self.hooks.settings.parallel)

    @property
    def held(self) -> int:
        return sum(map(len, self.lanes.values()))

    async def run(self) -> None:
        while True:
            if not self.hooks.peers.is_preferred(f"webhooks:{self.tenant}"):
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            async with self.room:
                await self.room.wait_for(lambda: self.held < HELD_ITEMS)
            try:
                await self._take()
            except RelayError as exc:
                log.info("webhook_items_not_taken", reason=exc.message)
                await asyncio.sleep(PAUSE_SECONDS)

    async def keep_leases(self) -> None:
        while True:
            await asyncio.sleep(EXTEND_SECONDS)
            places = [letter.place for lane in self.lanes.values() for letter in lane]
            if not places:
                continue
            try:
                await self.hooks.desk.extend(self.tenant, self.hooks.gateway, places)
            except RelayError as exc:
                log.info("webhook_leases_not_extended", reason=exc.message)

    async def _take(self) -> None:
        room = min(HELD_ITEMS - self.held, self.hooks.desk.settings.take_items)
        lease_seconds = min(LEASE_SECONDS, self.hooks.desk.settings.max_lease_seconds)
        items = await self.hooks.desk.take(
            self.tenant, self.hooks.gateway, room, lease_seconds, WAIT_SECONDS, for_webhooks=True
        )
        unwanted = []
        for item in items:
            try:
                letter = _Letter(item, decode_head(item.item))
            except msgspec.DecodeError:
                log.exception("inbox_item_unreadable")
                await self.hooks.desk.bury(self.tenant, [(item.shard, item.entry)], "not readable")
                continue
            if _is_unwanted(self._plan(letter)):
                unwanted.append((item.shard, item.entry))
            elif not any(letter.place == held.place for held in self.lanes.get(letter.head.session, ())):
                self._queue(letter)
        if unwanted:
            await self.hooks.desk.ack(self.tenant, unwanted)
            self.hooks.measures.webhook_items["skipped"] += len(unwanted)

    def _plan(self, letter: _Letter) -> Plan:
        return plan_for(self.tenant, letter.head, self.hooks.settings.receivers, self.hooks.table_for)

    def _queue(self, letter: _Letter) -> None:
        lane = self.lanes.get(letter.head.session)
        if lane is not None:
            lane.append(letter)
            return
        self.lanes[letter.head.session] = deque([letter])
        self.hooks.owner.start("webhook", self._work(letter.head.session))

    async def _work(self, session: str) -> None:
        """The items of one session, in order."""
        lane = self.lanes[session]
        try:
            while lane:
                await self._deliver(lane[0])
                lane.popleft()
                await self._tell_room()
        finally:
            # Cut short: the leases end by themselves, and the next gateway goes on.
            self.lanes.pop(session, None)

    async def _tell_room(self) -> None:
        async with self.room:
            self.room.notify_all()

    async def _deliver(self, letter: _Letter) -> None:
        """Returns when it is acknowledged or buried; if Redis did not hear that, it comes again."""
        if letter.head.once in self.done:
            self.hooks.measures.webhook_items["repeated"] += 1
            await self._ack(letter)
            return
        plan = self._plan(letter)
        if letter.head.is_late(self.hooks.wall_clock()):
            await self._expire(letter, plan)
        elif plan.is_for_queue:
            await self._pass_on(letter, plan, is_fallback=plan.is_fallback)
        elif plan.is_refused:
            await self._bury(letter, f"no webhook wants {letter.head.kind}, and the route has no fallback")
        elif plan.receiver is None:  # the table has changed since it was taken
            await self._ack(letter)
            self.hooks.measures.webhook_items["skipped"] += 1
        else:
            await self._post(letter, plan, plan.receiver)

    async def _post(self, letter: _Letter, plan: Plan, receiver: Receiver) -> None:
        detail = ""
        for attempt in range(1, plan.attempts + 1):
            async with self.turns.turn(plan.rank):
                if letter.head.is_late(self.hooks.wall_clock()):
                    await self._expire(letter, plan)
                    return
                posted = await self.hooks.poster.post(
                    receiver,
                    letter.item.item,
                    item_id=letter.head.id,
                    attempt=attempt,
                    traceparent=letter.head.traceparent,
                )
            self.hooks.measures.webhook_posts[posted.outcome.value] += 1
            if posted.outcome is PostOutcome.OK:
                self._remember(letter.head)
                if await self._ack(letter):
                    self.hooks.measures.webhook_items["delivered"] += 1
                return
            detail = posted.detail
            if attempt == 1:
                log.warning("webhook_failed", receiver=receiver.name, detail=detail, trace_id=self._trace(letter))
            if attempt < plan.attempts:
                await asyncio.sleep(self._pause_seconds(plan, letter, attempt, posted.after_seconds))
        if plan.falls_back:
            await self._pass_on(letter, plan, is_fallback=True)
            return
        log.error("webhook_gave_up", receiver=receiver.name, detail=detail, trace_id=self._trace(letter))
        await self._bury(letter, f"webhook {receiver.name}: {detail} after {plan.attempts} attempts")

    async def _pass_on(self, letter: _Letter, plan: Plan, *, is_fallback: bool) -> None:
        """To the tenant's other consumers. It is there before it leaves here: a crash between makes a repeat."""
        try:
            await self.hooks.desk.pass_on(self.tenant, letter.item)
        except RelayError as exc:
            log.info("webhook_item_not_passed_on", reason=exc.message)
            return
        self.hooks.measures.webhook_items["queued"] += 1
        if is_fallback:
            self.hooks.measures.route_fallbacks[plan.version] += 1

    async def _expire(self, letter: _Letter, plan: Plan) -> None:
        self.hooks.measures.route_expired[plan.version] += 1
        await self._bury(letter, LATE, outcome="expired")

    async def _ack(self, letter: _Letter) -> bool:
        """False: Redis did not hear it."""
        try:
            await self.hooks.desk.ack(self.tenant, [letter.place])
        except RelayError as exc:
            log.info("webhook_outcome_not_stored", reason=exc.message)
            return False
        return True

    async def _bury(self, letter: _Letter, reason: str, outcome: str = "dead") -> None:
        try:
            await self.hooks.desk.bury(self.tenant, [letter.place], reason)
        except RelayError as exc:
            log.info("webhook_outcome_not_stored", reason=exc.message)
            return
        self.hooks.measures.webhook_items[outcome] += 1

    def _remember(self, head: Head) -> None:
        self.done[head.once] = None
        while len(self.done) > MAX_REMEMBERED:
            self.done.popitem(last=False)

    def _pause_seconds(self, plan: Plan, letter: _Letter, attempt: int, at_least_seconds: float) -> float:
        """Full jitter; the receiver's own word is a lower bound. Not beyond the item's deadline."""
        settings, rng = self.hooks.settings, self.hooks.rng
        retry = plan.retry or Retry(
            1, initial_seconds=settings.backoff_seconds, max_seconds=settings.max_backoff_seconds
        )
        pause = at_least_seconds + retry.pause_seconds(attempt, rng.uniform(0, 1))
        if letter.head.expires_at is None:
            return pause
        return max(0.0, min(pause, letter.head.expires_at / 1000 - self.hooks.wall_clock()))

    @staticmethod
    def _trace(letter: _Letter) -> str | None:
        return trace_id(letter.head.traceparent)


def _is_unwanted(plan: Plan) -> bool:
    return plan.receiver is None and not plan.is_for_queue and not plan.is_refused


__all__ = ["HELD_ITEMS", "LEASE_SECONDS", "Webhooks"]
