"""Asks, outboxes, the inbox and deadlines in memory, as the ports promise them; with failures on demand."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId, SessionKey, SessionRef, Tenant
from gateway.ports import (
    DUE_SHARDS,
    Answer,
    Appended,
    AskId,
    AskInfo,
    AskRefusal,
    AskRefused,
    AskStatus,
    Due,
    InboxItem,
    InboxLag,
    InputAccepted,
    InputRefused,
    InputRequest,
    OpenAsk,
    OutboxItem,
    Resolved,
    StoreUnavailable,
    SweepResult,
)
from gateway.ports.inbox import QUEUE_SHARDS_FROM

LINE = Line(b"e.f")
NEIGHBOUR = GatewayId("gw-2")


@dataclass
class Faults:
    """The next calls of these names are cut: `before` they take effect, or `after`."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def check(self, name: str, *, is_after: bool = False) -> None:
        planned = self.after if is_after else self.before
        if name in planned:
            planned.remove(name)
            raise StoreUnavailable("cut", outcome_unknown=is_after)


@dataclass
class FakeExchange:
    """Asks and outboxes of all sessions; `sweeps` says what a sweep of a session answers."""

    faults: Faults = field(default_factory=Faults)
    asks: dict[tuple[bytes, AskId], AskInfo] = field(default_factory=dict)
    bodies: dict[tuple[bytes, AskId], bytes] = field(default_factory=dict)
    watchers: list[tuple[AskId, GatewayId | None]] = field(default_factory=list)
    left: list[AskId] = field(default_factory=list)
    outboxes: dict[bytes, list[OutboxItem]] = field(default_factory=dict)
    sweeps: dict[bytes, SweepResult] = field(default_factory=dict)
    swept: list[bytes] = field(default_factory=list)
    stale_notes: int = 0
    refusal: AskRefusal | None = None
    numbers: int = 0

    async def accept_input(self, request: InputRequest) -> InputAccepted | InputRefused:
        raise NotImplementedError

    async def open_ask(self, request: OpenAsk) -> AskInfo | AskRefused:
        self.faults.check("open_ask")
        refused = self._refused(request.due_ms)
        if refused is not None:
            return refused
        place = (request.session.key, request.ask)
        if place in self.asks:
            is_same = self.bodies[place] == request.body
            return replace(self.asks[place], is_new=False) if is_same else AskRefused(AskRefusal.CONFLICT)
        self.bodies[place] = request.body
        self.asks[place] = AskInfo(
            request.ask,
            AskStatus.OPEN,
            7,
            request.expires_in_ms,
            request.record,
            b"{}",
            b"",
            True,
            LINE,
            7,
            (NEIGHBOUR,),
        )
        self.faults.check("open_ask", is_after=True)
        return self.asks[place]

    async def ask(
        self, session: SessionRef, ask: AskId, watcher: GatewayId | None = None, *, leaves: bool = False
    ) -> AskInfo | None:
        self.faults.check("ask")
        self.left += [ask] if leaves else []
        self.watchers.append((ask, watcher))
        return self.asks.get((session.key, ask))

    async def resolve_ask(self, answer: Answer) -> Resolved | AskRefused:
        self.faults.check("resolve_ask")
        refused = self._refused(answer.due_ms)
        if refused is not None:
            return refused
        place = (answer.session.key, answer.ask)
        info = self.asks.get(place)
        if info is None:
            return AskRefused(AskRefusal.NOT_FOUND)
        if info.status is not AskStatus.OPEN:
            return Resolved(False, info)
        self.resolve(answer.session, answer.ask, answer.status, answer.resolved_body + b"}")
        if answer.item:
            self.put(answer.session, answer.item)
        self.faults.check("resolve_ask", is_after=True)
        return Resolved(True, self.asks[place])

    async def outbox(self, session: SessionRef, limit: int) -> list[OutboxItem]:
        self.faults.check("outbox")
        return self.outboxes.get(session.key, [])[:limit]

    async def relayed(self, session: SessionRef, entries: Sequence[str]) -> None:
        self.faults.check("relayed")
        items = self.outboxes.get(session.key, [])
        self.outboxes[session.key] = [item for item in items if item.entry not in entries]
        self.faults.check("relayed", is_after=True)

    async def sweep(self, session: SessionRef) -> SweepResult:
        self.faults.check("sweep")
        self.swept.append(session.key)
        return self.sweeps.get(session.key, SweepResult(False, None, False, None, 0, (), ()))

    def put(self, session: SessionRef, *items: bytes) -> None:
        for item in items:
            self.numbers += 1
            self.outboxes.setdefault(session.key, []).append(OutboxItem(f"{self.numbers}-0", item))

    def resolve(self, session: SessionRef, ask: AskId, status: AskStatus, resolution: bytes) -> None:
        place = (session.key, ask)
        self.asks[place] = replace(self.asks[place], status=status, resolution=resolution, head=8)

    def _refused(self, due_ms: int | None) -> AskRefused | None:
        assert due_ms is not None
        if self.stale_notes:
            self.stale_notes -= 1
            return AskRefused(AskRefusal.DUE_STALE)
        return None if self.refusal is None else AskRefused(self.refusal)


@dataclass
class FakeDeadlines:
    faults: Faults = field(default_factory=Faults)
    notes: list[tuple[bytes, int]] = field(default_factory=list)
    overdue: dict[int, list[Due]] = field(default_factory=lambda: {shard: [] for shard in range(DUE_SHARDS)})
    settled: list[tuple[bytes, int | None]] = field(default_factory=list)

    async def note(self, session: SessionRef, in_ms: int) -> int:
        self.faults.check("note")
        self.notes.append((session.key, in_ms))
        return 1_000

    async def due(self, shard: int, limit: int) -> list[Due]:
        self.faults.check("due")
        return self.overdue[shard][:limit]

    async def settle(self, due: Due, next_in_ms: int | None) -> None:
        self.faults.check("settle")
        self.settled.append((due.session, next_in_ms))
        self.overdue[due.shard].remove(due)

    def add(self, session: SessionRef, shard: int = 0, overdue_ms: int = 0) -> None:
        self.overdue[shard].append(Due(SessionKey(session.key), shard, "1", overdue_ms))


@dataclass
class FakeInbox:
    """One stream a tenant; what is taken stays until it is acknowledged or given back by `expire`."""

    faults: Faults = field(default_factory=Faults)
    is_full: bool = False
    deposits: list[tuple[Tenant, int, tuple[bytes, ...]]] = field(default_factory=list)
    waiting: list[InboxItem] = field(default_factory=list)
    taken: dict[tuple[int, str], InboxItem] = field(default_factory=dict)
    acked: list[tuple[int, str]] = field(default_factory=list)
    extended: list[tuple[str, tuple[tuple[int, str], ...]]] = field(default_factory=list)
    buried: list[tuple[tuple[int, str], str]] = field(default_factory=list)
    letters: list[tuple[str, bytes, str]] = field(default_factory=list)
    redriven: list[tuple[str, ...]] = field(default_factory=list)
    left: list[tuple[Tenant, GatewayId]] = field(default_factory=list)
    takes: list[tuple[Tenant, str, int, int, GatewayId | None]] = field(default_factory=list)
    lags: dict[Tenant, InboxLag] = field(default_factory=dict)

    async def deposit(self, tenant: Tenant, shard: int, items: Sequence[bytes]) -> bool:
        await asyncio.sleep(0)  # as any call to Redis: others go on meanwhile
        self.faults.check("deposit")
        if self.is_full:
            return False
        self.deposits.append((tenant, shard, tuple(items)))
        for item in items:
            self.put(item, shard)
        self.faults.check("deposit", is_after=True)
        return True

    async def take(
        self,
        tenant: Tenant,
        consumer: str,
        limit: int,
        lease_ms: int,
        waiter: GatewayId | None = None,
        *,
        for_webhooks: bool = False,
    ) -> list[InboxItem]:
        self.faults.check("take")
        self.takes.append((tenant, consumer, limit, lease_ms, waiter))
        theirs = [item for item in self.waiting if not for_webhooks or item.shard < QUEUE_SHARDS_FROM]
        items = theirs[:limit]
        self.waiting = [item for item in self.waiting if item not in items]
        self.taken |= {(item.shard, item.entry): item for item in items}
        return items

    async def leave(self, tenant: Tenant, waiter: GatewayId) -> None:
        self.left.append((tenant, waiter))

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int:
        self.faults.check("ack")
        self.acked += items
        return sum(self.taken.pop(place, None) is not None for place in items)

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int:
        self.extended.append((consumer, tuple(items)))
        return sum(place in self.taken for place in items)

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int:
        self.buried += [(place, reason) for place in items]
        return sum(self.taken.pop(place, None) is not None for place in items)

    async def dead(self, tenant: Tenant, limit: int) -> list[tuple[str, bytes, str]]:
        return self.letters[:limit]

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int:
        self.redriven.append(tuple(entries))
        return len(entries) or len(self.letters)

    async def lag(self, tenant: Tenant) -> InboxLag:
        self.faults.check("lag")
        return self.lags.get(tenant, InboxLag(len(self.waiting) + len(self.taken), len(self.letters), 0))

    def put(self, item: bytes, shard: int = 0, deliveries: int = 1) -> InboxItem:
        made = InboxItem(shard, f"{len(self.waiting) + len(self.taken) + len(self.acked) + 1}-0", item, deliveries)
        self.waiting.append(made)
        return made

    @property
    def items(self) -> list[bytes]:
        return [item for _, _, items in self.deposits for item in items]


@dataclass
class FakeOutboxes:
    """core/relay.py as asks and sweeps call it."""

    poked: list[SessionRef] = field(default_factory=list)
    full: Exception | None = None

    def poke(self, session: SessionRef) -> None:
        self.poked.append(session)

    def check(self, _: Tenant) -> None:
        if self.full is not None:
            raise self.full


@dataclass
class FakeNotes:
    heads: list[tuple[SessionRef, int, tuple[GatewayId, ...]]] = field(default_factory=list)

    def note(self, ref: SessionRef, appended: Appended) -> None:
        self.heads.append((ref, appended.head, appended.gateways))


@dataclass
class FakePeers:
    is_mine: bool = True
    asked: list[str] = field(default_factory=list)

    def is_preferred(self, thing: str) -> bool:
        self.asked.append(thing)
        return self.is_mine
