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

from gateway.core.lanes import Lanes
from gateway.core.noted import NotedAppends
from gateway.core.order import Windows
from gateway.core.own_appends import OwnAppends, Push, placeholders
from gateway.core.quotas import Quotas
from gateway.core.refusals import GivenUp, refusal, unavailable
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, ProducerName, SessionRef, UserId
from gateway.domain.wire.own_identity import own_producer_name
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefused,
    AppendRequest,
    Clock,
    Expected,
    LogStore,
    Moved,
    Order,
    ProducerRef,
    Registered,
    StoreUnavailable,
)
from gateway.settings import LimitSettings, RedisSettings

log = structlog.get_logger()

_T = TypeVar("_T")


class AppendNotes(Protocol):
    """Who tells other gateways how far a session is (core/notices.py)."""

    def note(self, ref: SessionRef, appended: Appended) -> None: ...


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
    noted: NotedAppends
    windows: Windows
    quotas: Quotas | None = None
    lanes: Lanes = field(init=False)
    own: OwnAppends = field(init=False)

    def __post_init__(self) -> None:
        self.lanes = Lanes(self.limits.batch_items, self.limits.batch_bytes, self.clock)
        identity = own_producer_name(self.gateway)
        self.own = OwnAppends(self.store, self.lanes, identity, self._attempts, self._until, self._note)

    async def append(
        self,
        session: SessionRef,
        items: tuple[Item, ...],
        *,
        producer: ProducerRef | None = None,
        first_number: int = 1,
        owner: UserId | None = None,
        idempotency_key: str | None = None,
        order: Order | None = None,
        kept_ms: int | None = None,
        is_counted: bool = False,
    ) -> Appended:
        """Whole or not at all; calls for one session and producer take effect in the order in which they were made.

        Without `producer` the gateway's own identity is used. RelayError: EXPECTED, PRODUCER_UNKNOWN, FENCED, GONE,
        BUSY and QUOTA_EXCEEDED wrote nothing; UNAVAILABLE says in details.outcome whether the messages may be there.
        With `order` (of a producer) what comes too early waits; `kept_ms`: AppendRequest.
        `is_counted`: quotas know of them already.
        """
        size_bytes = sum(len(item.body) for item in items)
        if self.quotas is not None and not is_counted:
            self.quotas.check_append(session, len(items), size_bytes)
        began = self.clock()
        push = Push(session, items, owner, idempotency_key, began + self.redis.deadline_seconds, order, kept_ms)
        try:
            if producer is None:
                own = self.lanes.own(session.key)
                async with self.lanes.turn(own, len(items), size_bytes):
                    appended = await self.own.append(own, push)
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
        self,
        session: SessionRef,
        count: int,
        producer: ProducerRef,
        first_number: int,
        code: ErrorCode,
        order: Order | None = None,
    ) -> None:
        """Numbers of a named producer whose messages are refused for good: its next number is behind them.

        Raises RelayError as `append` does when they could not be consumed; then the caller must say that instead.
        """
        if self.quotas is not None:
            self.quotas.check_append(session, count, 0)
        request = replace(placeholders(session, count, producer, first_number), order=order)
        deadline = self.clock() + self.redis.deadline_seconds

        def call(noted: AppendRequest) -> Awaitable[AppendOutcome]:
            return self.store.consume_numbers(noted, code.value)

        async with self.lanes.turn(self.lanes.named(session.key, producer.name), count, 0):
            try:
                outcome, _ = await self._until(deadline, lambda: self.noted.attempt(request, call))
            except GivenUp as exc:
                raise unavailable(exc) from None
        match outcome:
            case Appended():
                self._watch_window(session, outcome)
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

    async def _append_named(self, push: Push, producer: ProducerRef, first_number: int) -> Appended:
        try:
            outcome, _ = await self._attempts(push, producer, first_number)
        except GivenUp as exc:
            raise unavailable(exc) from None
        if isinstance(outcome, Appended):
            return outcome
        raise refusal(outcome)

    async def _attempts(self, push: Push, producer: ProducerRef, first_number: int) -> tuple[AppendOutcome, bool]:
        request = AppendRequest(
            push.session,
            push.items,
            producer,
            first_number,
            push.owner,
            push.idempotency_key,
            order=push.order,
            kept_ms=push.kept_ms,
        )
        return await self._until(push.deadline, lambda: self.noted.attempt(request, self.store.append))

    async def _until(self, deadline: float, call: Callable[[], Awaitable[_T]]) -> tuple[_T, bool]:
        """The answer, and whether an earlier attempt may have taken effect. Full jitter between. Raises GivenUp."""
        bound = self.redis.backoff_min_ms / 1000
        longest = self.redis.backoff_max_ms / 1000
        reason, is_unknown, code = "its turn did not come in time", False, ErrorCode.UNAVAILABLE
        while self.clock() < deadline:
            try:
                return await call(), is_unknown
            except StoreUnavailable as exc:
                reason, code = exc.reason, exc.error_code
                is_unknown = is_unknown or exc.outcome_unknown
            self.measures.append_retries += 1
            await asyncio.sleep(min(self.rng.uniform(0, bound), max(0.0, deadline - self.clock())))
            bound = min(bound * 2, longest)
        raise GivenUp(reason, is_unknown, code)

    def _note(self, session: SessionRef, appended: Appended) -> None:
        results = appended.results
        written = sum(result.seq is not None and not result.duplicate for result in results)
        waiting = sum(result.pending for result in results)
        self._count("ok" if written else "pending" if waiting else "duplicate")
        self.measures.appended_messages += written
        if waiting or appended.window_ms is not None or appended.gaps or any(result.late for result in results):
            self.measures.ordered["waited"] += waiting
            self.measures.ordered["late"] += sum(result.late for result in results)
            self._watch_window(session, appended)
        if self.quotas is not None:
            self.quotas.saw(session, appended)
        # Also of a repeat: the attempt that wrote it was not answered, so nobody has been told of it.
        self.notes.note(session, appended)

    def _watch_window(self, session: SessionRef, appended: Appended) -> None:
        self.measures.ordered["gaps"] += appended.gaps
        if appended.window_ms is not None:
            self.windows.release_in(session, appended.window_ms)

    def _count(self, outcome: str) -> None:
        self.measures.appends[outcome] += 1


_OUTCOMES = {
    ErrorCode.EXPECTED: "expected",
    ErrorCode.UNAVAILABLE: "unavailable",
    ErrorCode.UNREPLICATED: "unreplicated",
    ErrorCode.BUSY: "busy",
}


__all__ = ["AppendNotes", "Ingest"]
