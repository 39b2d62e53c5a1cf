"""Appends under the gateway's own identity: epochs count up within this process, numbers begin at 1 in each (G5).

Knows what its numbers were answered, so it notices lost writes, and says so in the log before it goes on. Called by
ingest, by whoever has the lane's turn.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeVar, assert_never

import structlog

from gateway.core.lanes import Lanes, OwnLane
from gateway.core.refusals import GivenUp, refusal, unavailable
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.ids import ProducerName, SessionRef, UserId
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Expected,
    LogStore,
    Moved,
    Order,
    ProducerRef,
    StoreUnavailable,
)

log = structlog.get_logger()

MAX_ROUNDS: Final = 4
"""New epochs that one append may need; more means that somebody else writes under our name."""

_T = TypeVar("_T")
_LOST_WRITES = make_item({"kind": "producer_gap", "reason": "lost_writes"})


@dataclass(frozen=True, slots=True)
class Push:
    """What one call of ingest brings."""

    session: SessionRef
    items: tuple[Item, ...]
    owner: UserId | None
    idempotency_key: str | None
    deadline: float
    order: Order | None = None
    kept_ms: int | None = None


class Until(Protocol):
    """Repeats a call until a deadline: its answer, and whether an earlier attempt may have worked. Raises GivenUp."""

    async def __call__(self, deadline: float, call: Callable[[], Awaitable[_T]]) -> tuple[_T, bool]: ...


class OwnAppends:
    """One per gateway. `attempts` appends a push as a producer from a number on, repeated like `until`."""

    def __init__(
        self,
        store: LogStore,
        lanes: Lanes,
        identity: ProducerName,
        attempts: Callable[[Push, ProducerRef, int], Awaitable[tuple[AppendOutcome, bool]]],
        until: Until,
        note: Callable[[SessionRef, Appended], None],
    ) -> None:
        self._store = store
        self._lanes = lanes
        self.identity = identity
        self._attempts = attempts
        self._until = until
        self._note = note

    async def append(self, lane: OwnLane, push: Push) -> Appended:
        """Under our own identity: epochs count up within this process, numbers begin at 1 in each."""
        if lane.items_in_doubt:
            await self._settle_doubt(lane, push)
        if lane.is_owing_gap:
            gap = replace(push, items=(_LOST_WRITES,), idempotency_key=None, kept_ms=None)
            self._note(push.session, await self._append_numbered(lane, gap))
            lane.is_owing_gap = False
        return await self._append_numbered(lane, push)

    async def _append_numbered(self, lane: OwnLane, push: Push) -> Appended:
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
                    self._lanes.next_epoch(lane)
                case Expected():
                    await self._after_expected(lane, push, outcome)
                    if lane.is_owing_gap:
                        return await self.append(lane, push)
                case AppendRefused(AppendRefusal.FENCED | AppendRefusal.PRODUCER_UNKNOWN):
                    log.warning("own_epoch_refused", epoch=lane.epoch, reason=outcome.reason.value)
                    self._lanes.next_epoch(lane)
                case AppendRefused() | Moved():
                    self._lanes.next_epoch(lane)  # whether the numbers are consumed need not be known then
                    raise refusal(outcome)
                case _:
                    assert_never(outcome)
        raise unavailable(GivenUp("another writer uses this gateway's identity", is_unknown=False))

    async def _settle_doubt(self, lane: OwnLane, push: Push) -> None:
        """Messages were given up without an answer: consume their numbers, so that a late execution writes nothing.

        Unlike a new epoch alone this also tells whether acknowledged messages were lost meanwhile.
        """
        producer = ProducerRef(self.identity, lane.epoch, registers=True)
        request = placeholders(push.session, lane.items_in_doubt, producer, lane.last_number + 1)
        try:
            outcome, _ = await self._until(push.deadline, lambda: self._store.consume_numbers(request, "given_up"))
        except GivenUp as exc:
            raise unavailable(replace(exc, is_unknown=False)) from None
        match outcome:
            case Appended():
                lane.confirm(lane.items_in_doubt, outcome.line)
            case Expected():
                await self._after_expected(lane, push, outcome)
            case AppendRefused() | Moved():
                self._lanes.next_epoch(lane)
            case _:
                assert_never(outcome)

    async def _after_expected(self, lane: OwnLane, push: Push, expected: Expected) -> None:
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
        self._lanes.next_epoch(lane)

    async def _read_line(self, session: SessionRef) -> Line | None:
        head = (await self._store.heads([session]))[0]
        if isinstance(head, StoreUnavailable):
            raise head
        return None if head.is_stale else head.line


def placeholders(session: SessionRef, count: int, producer: ProducerRef, first_number: int) -> AppendRequest:
    """For numbers without messages."""
    return AppendRequest(session, (Item(EntryClass.OTHER, "", 0, False, b"{"),) * count, producer, first_number)


__all__ = ["MAX_ROUNDS", "OwnAppends", "Push", "Until", "placeholders"]
