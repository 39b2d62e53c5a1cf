"""A log in memory with the producer rules of ports.LogStore, behind a network that fails as a real one may."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import GatewayId, ProducerName, SessionRef, UserId
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Expected,
    Fork,
    HeadInfo,
    ItemResult,
    LogState,
    LogStore,
    ProducerRef,
    Registered,
    RouteInfo,
    SessionInfo,
    StoreUnavailable,
)


@dataclass(slots=True)
class _Producer:
    epoch: int
    results: dict[int, ItemResult] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return max(self.results, default=0)


@dataclass(slots=True)
class FakeSession:
    fork: int = 0
    items: list[Item] = field(default_factory=list)
    producers: dict[ProducerName, _Producer] = field(default_factory=dict)
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    ended_runs: set[str] = field(default_factory=set)
    written_runs: set[str] = field(default_factory=set)
    """They have a writer."""
    is_gone: bool = False
    owner: UserId | None = None
    routes: tuple[RouteInfo, ...] = ()

    @property
    def line(self) -> Line:
        return Line(b"epoch.fork%d" % self.fork)


class FakeLog:
    """Executes at once and surely. `lose` takes back the newest messages, as a fail-over may."""

    def __init__(self) -> None:
        self.sessions: dict[SessionRef, FakeSession] = {}

    def session(self, ref: SessionRef) -> FakeSession:
        return self.sessions.setdefault(ref, FakeSession())

    def lose(self, ref: SessionRef, count: int) -> None:
        """Another server goes on from before the last `count` messages."""
        session = self.session(ref)
        head = len(session.items) - count
        del session.items[head:]
        for producer in session.producers.values():
            producer.results = {n: r for n, r in producer.results.items() if r.seq is None or r.seq <= head}
        session.fork += 1

    def append(self, request: AppendRequest) -> AppendOutcome:
        session = self.session(request.session)
        if session.is_gone:
            return AppendRefused(AppendRefusal.GONE)
        session.owner = session.owner or request.owner
        producer = self._producer(session, request.producer)
        key = request.idempotency_key
        if key is not None and key in session.seen:
            first, count = session.seen[key]
            if isinstance(producer, _Producer) and request.first_number == producer.last + 1:
                self._remember(producer, request, [ItemResult(None, True)] * len(request.items))
            results = [ItemResult(first + i if i < count else None, True) for i in range(len(request.items))]
            return self._answer(session, results)
        if not isinstance(producer, _Producer):
            return producer
        if request.first_number > producer.last + 1:
            return Expected(producer.last + 1)
        results = []
        for offset, item in enumerate(request.items):
            known = producer.results.get(request.first_number + offset)
            if known is not None:
                results.append(known._replace(duplicate=True))
            elif item.run in session.ended_runs | session.written_runs:
                reason = AppendRefusal.RUN_ENDED if item.run in session.ended_runs else AppendRefusal.HAS_WRITER
                self._remember(producer, request, [ItemResult(None, True, reason.value)] * len(request.items))
                return AppendRefused(reason, offset)
            else:
                written = sum(not result.duplicate for result in results)
                results.append(ItemResult(len(session.items) + written + 1, False))
        fresh = [item for item, result in zip(request.items, results, strict=True) if not result.duplicate]
        if key is not None:
            session.seen[key] = (len(session.items) + 1, len(fresh))
        session.items += fresh
        self._remember(producer, request, results)
        return self._answer(session, results)

    def consume(self, request: AppendRequest, code: str) -> AppendOutcome:
        session = self.session(request.session)
        if session.is_gone:
            return AppendRefused(AppendRefusal.GONE)
        producer = self._producer(session, request.producer)
        if not isinstance(producer, _Producer):
            return producer
        if request.first_number > producer.last + 1:
            return Expected(producer.last + 1)
        results = [
            producer.results.get(request.first_number + i, ItemResult(None, True, code))._replace(duplicate=True)
            for i in range(len(request.items))
        ]
        self._remember(producer, request, results)
        return self._answer(session, results)

    def _producer(self, session: FakeSession, ref: ProducerRef) -> _Producer | AppendRefused:
        known = session.producers.get(ref.name)
        if known is not None and known.epoch == ref.epoch:
            return known
        if not ref.registers:
            return AppendRefused(AppendRefusal.PRODUCER_UNKNOWN if known is None else AppendRefusal.FENCED)
        if known is not None and known.epoch > ref.epoch:
            return AppendRefused(AppendRefusal.FENCED)
        session.producers[ref.name] = _Producer(ref.epoch)
        return session.producers[ref.name]

    def _remember(self, producer: _Producer, request: AppendRequest, results: Sequence[ItemResult]) -> None:
        for offset, result in enumerate(results):
            producer.results.setdefault(request.first_number + offset, result)

    def _answer(self, session: FakeSession, results: Sequence[ItemResult]) -> Appended:
        return Appended(tuple(results), session.line, len(session.items), True, (GatewayId("gw-2"),))


Plan = Callable[[], str]
"""What happens to the next call: ok, refused (not executed, known), lost (not executed, unknown), cut (executed, the
answer is lost), late (executed after the caller has given up on this attempt)."""


class FakeStore:
    """`ports.LogStore` for ingest: a FakeLog behind a network."""

    def __init__(self, plan: Plan = lambda: "ok", rng: random.Random | None = None) -> None:
        self.log = FakeLog()
        self.plan = plan
        self.calls = 0
        self.in_flight: dict[tuple[SessionRef, ProducerName], int] = {}
        self._rng = rng or random.Random(1)
        self._late: list[Callable[[], AppendOutcome]] = []

    def as_store(self) -> LogStore:
        return cast("LogStore", self)

    def run_late(self, count: int | None = None) -> int:
        """Execute calls that were given up, oldest first, as a server does that was stalled."""
        due, self._late = self._late[:count], [] if count is None else self._late[count:]
        for execute in due:
            execute()
        return len(due)

    async def append(self, request: AppendRequest) -> AppendOutcome:
        lane = (request.session, request.producer.name)
        self.in_flight[lane] = self.in_flight.get(lane, 0) + 1
        try:
            assert self.in_flight[lane] == 1, "two calls of one lane in flight"
            return cast("AppendOutcome", await self._call(lambda: self.log.append(request)))
        finally:
            self.in_flight[lane] -= 1

    async def consume_numbers(self, request: AppendRequest, code: str) -> AppendOutcome:
        return cast("AppendOutcome", await self._call(lambda: self.log.consume(request, code)))

    async def register_producer(
        self, session: SessionRef, name: ProducerName, owner: UserId | None
    ) -> Registered | AppendRefused:
        def execute() -> Any:
            state = self.log.session(session)
            known = state.producers.get(name)
            state.producers[name] = _Producer(1 if known is None else known.epoch + 1)
            state.owner = state.owner or owner
            return Registered(state.producers[name].epoch, state.line)

        return cast("Registered", await self._call(execute))

    async def delete(self, session: SessionRef) -> bool:
        def execute() -> Any:
            was_there = session in self.log.sessions and not self.log.sessions[session].is_gone
            self.log.session(session).is_gone = True
            return was_there

        return cast("bool", await self._call(execute))

    async def info(self, session: SessionRef) -> SessionInfo | None:
        def execute() -> Any:
            state = self.log.sessions.get(session)
            if state is None:
                return None
            log = LogState("epoch", (Fork(f"fork{state.fork}", 0),), len(state.items), 0)
            return SessionInfo(log, state.owner, 1, 10 * len(state.items), 0, state.routes, is_deleted=state.is_gone)

        return cast("SessionInfo | None", await self._call(execute))

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo]:
        def execute() -> Any:
            return [
                HeadInfo(state.line, len(state.items), False)
                if (state := self.log.sessions.get(ref)) is not None and not state.is_gone
                else HeadInfo(None, 0, False)
                for ref in sessions
            ]

        return cast("list[HeadInfo]", await self._call(execute))

    async def _call(self, execute: Callable[[], Any]) -> Any:
        self.calls += 1
        fate = self.plan()
        await asyncio.sleep(self._rng.uniform(0.0001, 0.002))
        if fate == "refused":
            raise StoreUnavailable("OOM", outcome_unknown=False)
        if fate == "lost":
            raise StoreUnavailable("cut before it arrived", outcome_unknown=True)
        if fate == "late":
            self._late.append(execute)
            raise StoreUnavailable("timed out", outcome_unknown=True)
        answer = execute()
        if fate == "cut":
            raise StoreUnavailable("cut before the answer", outcome_unknown=True)
        return answer
