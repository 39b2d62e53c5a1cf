"""Appends what producers push: in order, each once, retried in order while Redis is in trouble (G2, G5, G9).

One lane per (session, producer): one script call of it is in flight, so a retry never overtakes. Must never answer for
a message whose fate it does not know, nor bridge lost writes silently. Called by the producer API.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, assert_never

import structlog

from gateway.core.lanes import Lanes, OwnLane
from gateway.core.refusals import GivenUp, refusal, unavailable
from gateway.domain.measures import Measures
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, ProducerName, SessionRef, UserId
from gateway.domain.wire.own_identity import own_producer_name
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Clock,
    Expected,
    LogStore,
    Moved,
    ProducerRef,
    Registered,
    StoreUnavailable,
)
from gateway.settings import LimitSettings, RedisSettings

log = structlog.get_logger()

MAX_ROUNDS = 4
"""New epochs that one append of our own identity may need; more means that somebody else writes under our name."""

_T = TypeVar("_T")
_LOST_WRITES = make_item({"kind": "producer_gap", "reason": "lost_writes"})


class AppendNotes(Protocol):
    """Who tells other gateways how far a session is (core/notices.py)."""

    def note(self, ref: SessionRef, appended: Appended) -> None: ...


@dataclass(frozen=True, slots=True)
class _Push:
    session: SessionRef
    items: tuple[Item, ...]
    owner: UserId | None
    idempotency_key: str | None
    deadline: float


@dataclass(slots=True)
class Ingest:
    """One per gateway."""

    store: LogStore
    redis: RedisSettings
    limits: LimitSettings
    measures: Measures
    gateway: GatewayId
    notes: AppendNotes
    clock: Clock
    rng: random.Random
    lanes: Lanes = field(init=False)
    identity: ProducerName = field(init=False)

    def __post_init__(self) -> None:
        self.lanes = Lanes(self.limits.batch_items, self.limits.batch_bytes, self.clock)
        self.identity = own_producer_name(self.gateway)

    async def append(
        self,
        session: SessionRef,
        items: tuple[Item, ...],
        *,
        producer: ProducerRef | None = None,
        first_number: int = 1,
        owner: UserId | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Whole or not at all; calls for one session and producer take effect in the order in which they were made.

        Without `producer` the gateway's own identity is used. RelayError: EXPECTED, PRODUCER_UNKNOWN, FENCED, GONE
        and BUSY wrote nothing; UNAVAILABLE says in details.outcome whether the messages may be there.
        """
        began = self.clock()
        push = _Push(session, items, owner, idempotency_key, began + self.redis.deadline_seconds)
        size_bytes = sum(len(item.body) for item in items)
        try:
            if producer is None:
                own = self.lanes.own(session.key)
                async with self.lanes.turn(own, len(items), size_bytes):
                    appended = await self._append_own(own, push)
            else:
                async with self.lanes.turn(self.lanes.named(session.key, producer.name), len(items), size_bytes):
                    appended = await self._append_named(push, producer, first_number)
        except RelayError as exc:
            self._count(_OUTCOMES.get(exc.code, "refused"))
            raise
        self.measures.append_seconds.observe(self.clock() - began)
        self._note(session, appended)
        return appended

    async def consume(
        self, session: SessionRef, count: int, producer: ProducerRef, first_number: int, code: ErrorCode
    ) -> None:
        """Numbers of a named producer whose messages are refused for good: its next number is behind them.

        Raises RelayError as `append` does when they could not be consumed; then the caller must say that instead.
        """
        request = _placeholders(session, count, producer, first_number)
        deadline = self.clock() + self.redis.deadline_seconds
        async with self.lanes.turn(self.lanes.named(session.key, producer.name), count, 0):
            try:
                outcome, _ = await self._until(deadline, lambda: self.store.consume_numbers(request, code.value))
            except GivenUp as exc:
                raise unavailable(exc) from None
        match outcome:
            case Appended():
                return
            case Expected() | AppendRefused() | Moved():
                raise refusal(outcome)
            case _:
                assert_never(outcome)

    async def register(self, session: SessionRef, name: ProducerName, owner: UserId | None) -> Registered:
        """A new epoch of a named producer; after an unknown outcome another one. RelayError: GONE, UNAVAILABLE."""
        deadline = self.clock() + self.redis.deadline_seconds
        try:
            outcome, _ = await self._until(deadline, lambda: self.store.register_producer(session, name, owner))
        except GivenUp as exc:
            raise unavailable(replace(exc, is_unknown=False)) from None
        if isinstance(outcome, AppendRefused):
            raise refusal(outcome)
        return outcome

    async def delete(self, session: SessionRef) -> bool:
        """False: there was none. RelayError UNAVAILABLE."""
        deadline = self.clock() + self.redis.deadline_seconds
        try:
            is_deleted, was_unknown = await self._until(deadline, lambda: self.store.delete(session))
        except GivenUp as exc:
            raise unavailable(exc) from None
        return is_deleted or was_unknown  # an attempt without an answer may have been the one that did it

    async def _append_named(self, push: _Push, producer: ProducerRef, first_number: int) -> Appended:
        try:
            outcome, _ = await self._attempts(push, producer, first_number)
        except GivenUp as exc:
            raise unavailable(exc) from None
        if isinstance(outcome, Appended):
            return outcome
        raise refusal(outcome)

    async def _append_own(self, lane: OwnLane, push: _Push) -> Appended:
        """Under our own identity: epochs count up within this process, numbers begin at 1 in each."""
        if lane.items_in_doubt:
            await self._settle_doubt(lane, push)
        if lane.is_owing_gap:
            gap = replace(push, items=(_LOST_WRITES,), idempotency_key=None)
            self._note(push.session, await self._append_numbered(lane, gap))
            lane.is_owing_gap = False
        return await self._append_numbered(lane, push)

    async def _append_numbered(self, lane: OwnLane, push: _Push) -> Appended:
        for _ in range(MAX_ROUNDS):
            lane.items_in_doubt = len(push.items)  # until an answer is here, also when this caller is cancelled
            producer = ProducerRef(self.identity, lane.epoch, registers=True)
            try:
                outcome, was_unknown = await self._attempts(push, producer, lane.last_number + 1)
            except GivenUp as exc:
                if not exc.is_unknown:
                    lane.items_in_doubt = 0
                raise unavailable(exc) from None
            match outcome:
                case Appended():
                    if was_unknown or push.idempotency_key or not any(result.duplicate for result in outcome.results):
                        lane.confirm(len(push.items), outcome.line)
                        return outcome
                    # Somebody used our numbers: what we were given must not be swallowed as a duplicate.
                    log.warning("own_number_taken", epoch=lane.epoch, number=lane.last_number + 1)
                    self.lanes.next_epoch(lane)
                case Expected():
                    await self._after_expected(lane, push, outcome)
                    if lane.is_owing_gap:
                        return await self._append_own(lane, push)
                case AppendRefused(AppendRefusal.FENCED | AppendRefusal.PRODUCER_UNKNOWN):
                    log.warning("own_epoch_refused", epoch=lane.epoch, reason=outcome.reason.value)
                    self.lanes.next_epoch(lane)
                case AppendRefused() | Moved():
                    self.lanes.next_epoch(lane)  # whether the numbers are consumed need not be known then
                    raise refusal(outcome)
                case _:
                    assert_never(outcome)
        raise unavailable(GivenUp("another writer uses this gateway's identity", is_unknown=False))

    async def _settle_doubt(self, lane: OwnLane, push: _Push) -> None:
        """Messages were given up without an answer: consume their numbers, so that a late execution writes nothing.

        Unlike a new epoch alone this also tells whether acknowledged messages were lost meanwhile.
        """
        producer = ProducerRef(self.identity, lane.epoch, registers=True)
        request = _placeholders(push.session, lane.items_in_doubt, producer, lane.last_number + 1)
        try:
            outcome, _ = await self._until(push.deadline, lambda: self.store.consume_numbers(request, "given_up"))
        except GivenUp as exc:
            raise unavailable(replace(exc, is_unknown=False)) from None
        match outcome:
            case Appended():
                lane.confirm(lane.items_in_doubt, outcome.line)
            case Expected():
                await self._after_expected(lane, push, outcome)
            case AppendRefused() | Moved():
                self.lanes.next_epoch(lane)
            case _:
                assert_never(outcome)

    async def _after_expected(self, lane: OwnLane, push: _Push, expected: Expected) -> None:
        """The store has forgotten numbers of ours: with their messages (it is on another line), or just the record."""
        if lane.line is not None and expected.number <= lane.last_number:
            try:
                line, _ = await self._until(push.deadline, lambda: self._read_line(push.session))
            except GivenUp as exc:
                lane.items_in_doubt = 0  # `expected` wrote nothing; the next push comes here again
                raise unavailable(replace(exc, is_unknown=False)) from None
            if line != lane.line:
                lane.is_owing_gap = True
                log.warning("lost_writes", expected=expected.number, acknowledged=lane.last_number)
        self.lanes.next_epoch(lane)

    async def _read_line(self, session: SessionRef) -> Line | None:
        head = (await self.store.heads([session]))[0]
        return None if head.is_stale else head.line

    async def _attempts(self, push: _Push, producer: ProducerRef, first_number: int) -> tuple[AppendOutcome, bool]:
        request = AppendRequest(push.session, push.items, producer, first_number, push.owner, push.idempotency_key)
        return await self._until(push.deadline, lambda: self.store.append(request))

    async def _until(self, deadline: float, call: Callable[[], Awaitable[_T]]) -> tuple[_T, bool]:
        """The answer, and whether an earlier attempt may have taken effect. Full jitter between. Raises GivenUp."""
        bound = self.redis.backoff_min_ms / 1000
        longest = self.redis.backoff_max_ms / 1000
        reason, is_unknown = "its turn did not come in time", False
        while self.clock() < deadline:
            try:
                return await call(), is_unknown
            except StoreUnavailable as exc:
                reason = exc.reason
                is_unknown = is_unknown or exc.outcome_unknown
            self.measures.append_retries += 1
            await asyncio.sleep(min(self.rng.uniform(0, bound), max(0.0, deadline - self.clock())))
            bound = min(bound * 2, longest)
        raise GivenUp(reason, is_unknown)

    def _note(self, session: SessionRef, appended: Appended) -> None:
        written = sum(not result.duplicate and result.refused is None for result in appended.results)
        self._count("ok" if written else "duplicate")
        self.measures.appended_messages += written
        # Also of a repeat: the attempt that wrote it was not answered, so nobody has been told of it.
        self.notes.note(session, appended)

    def _count(self, outcome: str) -> None:
        self.measures.appends[outcome] += 1


_OUTCOMES = {
    ErrorCode.EXPECTED: "expected",
    ErrorCode.UNAVAILABLE: "unavailable",
    ErrorCode.BUSY: "busy",
}


def _placeholders(session: SessionRef, count: int, producer: ProducerRef, first_number: int) -> AppendRequest:
    """For numbers without messages."""
    return AppendRequest(session, (Item(EntryClass.OTHER, "", 0, False, b"{"),) * count, producer, first_number)


__all__ = ["AppendNotes", "Ingest"]
