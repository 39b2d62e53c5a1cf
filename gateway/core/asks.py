"""Asks (approvals): opened by an agent, answered by people, waited for by the agent through any gateway.

The first valid answer wins, in one script; an invalid one is refused with its reason and consumes nothing. Must never
answer an ask for somebody whom it does not name. Called by the asks API and by the control of clients.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, assert_never

import msgspec
import structlog

from gateway.core.attempts import Attempts
from gateway.core.ingest import AppendNotes
from gateway.core.quotas import Quotas
from gateway.core.waits import Waits
from gateway.domain.access.principal import Principal
from gateway.domain.exchange.ask import (
    MAX_ANSWER_BYTES,
    AskRecord,
    AskSpec,
    decode_record,
    may_answer,
    problem_of_answer,
)
from gateway.domain.exchange.items import ItemKind, ask_item_id, encode_item
from gateway.domain.exchange.trace import trace_id
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, GatewayId, RunId, SessionRef, Tenant, UserId
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Answer,
    Appended,
    AskId,
    AskInfo,
    AskRefusal,
    AskRefused,
    AskStatus,
    Clock,
    Deadlines,
    Exchange,
    OpenAsk,
)
from gateway.settings import AskSettings, LimitSettings, OutboxSettings

log = structlog.get_logger()

MAX_WAIT_SECONDS: Final = 60.0
"""Of one request; below what proxies cut. The agent asks again."""


class Outboxes(Protocol):
    """core/relay.py."""

    def poke(self, session: SessionRef) -> None: ...

    def check(self, tenant: Tenant) -> None: ...


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """`is_winner` False: the ask was resolved before; `status` and `resolution` say how."""

    is_winner: bool
    status: AskStatus
    resolution: bytes
    """The `ask_resolved` payload, a whole JSON object."""
    seq: int
    """Of the ask."""


@dataclass(frozen=True, slots=True)
class Asks:
    """One per gateway. Everything raises RelayError only, and InvalidId for ids."""

    exchange: Exchange
    deadlines: Deadlines
    outboxes: Outboxes
    notes: AppendNotes
    attempts: Attempts
    measures: Measures
    gateway: GatewayId
    settings: AskSettings
    outbox: OutboxSettings
    limits: LimitSettings
    clock: Clock
    wall_clock: Callable[[], float]
    waits: Waits[tuple[bytes, AskId]] = field(default_factory=Waits)
    quotas: Quotas | None = None

    async def open(
        self, session: SessionRef, spec: AskSpec, expires_in_seconds: float | None, owner: UserId | None = None
    ) -> AskInfo:
        """Show it to people. The same ask again answers what has become of it. CONFLICT: the id is another ask's."""
        expires_in_ms = self._expiry_ms(expires_in_seconds)
        item = spec.item(self.limits.message_bytes)
        if self.quotas is not None:
            self.quotas.check_append(session, 1, len(item.body))
        run = None if spec.record.run is None else RunId(spec.record.run)
        request = OpenAsk(session, spec.ask, run, item.body, spec.encoded_record(), expires_in_ms, owner)
        outcome, _ = await self.attempts.noted(
            lambda: self.deadlines.note(session, expires_in_ms),
            lambda due_ms: self.exchange.open_ask(replace(request, due_ms=due_ms)),
            _is_stale,
        )
        if isinstance(outcome, AskRefused):
            raise _refusal(outcome.reason)
        self._tell(session, outcome)
        if outcome.is_new:
            self.measures.asks["opened"] += 1
            log.info("ask_opened", trace_id=trace_id(spec.record.traceparent), expires_in_ms=expires_in_ms)
        return outcome

    async def find(self, session: SessionRef, ask: AskId, wait_seconds: float = 0.0) -> AskInfo:
        """What has become of it; with `wait_seconds` as soon as it is resolved. Still open at the end: as it is."""
        seconds = min(max(0.0, wait_seconds), MAX_WAIT_SECONDS)
        place = (session.key, ask)
        is_watching = False
        with self.waits.waiting(place, self.clock, seconds) as wait:
            while True:
                leaves = wait.is_over and is_watching and self.waits.count(place) == 1
                is_watching = not wait.is_over
                call = partial(self.exchange.ask, session, ask, self.gateway if is_watching or leaves else None)
                info = await self.attempts.answer(partial(call, leaves=leaves))
                if info is None:
                    raise _refusal(AskRefusal.NOT_FOUND)
                if info.status is not AskStatus.OPEN or not await wait.next_look():
                    return info

    async def cancel(self, session: SessionRef, ask: AskId) -> AnswerOutcome:
        """By the agent: nobody can answer any more. Resolved before: it stays as it is."""
        info = await self.find(session, ask)
        if info.status is not AskStatus.OPEN:
            return _outcome(info, is_winner=info.status is AskStatus.CANCELLED)
        payload = {"kind": "ask_resolved", "ask": ask, "run": self._record(info).run, "status": AskStatus.CANCELLED}
        outcome = await self._resolve(session, ask, AskStatus.CANCELLED, payload)
        if outcome.is_winner:
            self.measures.asks["cancelled"] += 1
        return outcome

    async def answer(
        self,
        session: SessionRef,
        principal: Principal,
        client: ClientId,
        ask: AskId,
        value: Any,
        traceparent: str | None = None,
    ) -> AnswerOutcome:
        """The caller has seen to it that the principal may subscribe to this session.

        RelayError: NOT_FOUND; FORBIDDEN (not one of those who may); BAD_REQUEST (`details.reason` invalid_answer, with
        the problem): nothing was consumed; OUTBOX_FULL and INBOX_FULL: the agent could not have got it.
        """
        self._check_size(value)
        info = await self.find(session, ask)
        record = self._record(info)
        if not may_answer(record, principal.user, client):
            self.measures.asks["not_allowed"] += 1
            raise RelayError(ErrorCode.FORBIDDEN, "somebody else was asked", {"reason": "not_allowed_to_answer"})
        problem = problem_of_answer(record, value) if info.status is AskStatus.OPEN else None
        if problem is not None:
            self.measures.asks["invalid"] += 1
            raise RelayError(ErrorCode.BAD_REQUEST, problem, {"reason": "invalid_answer", "problem": problem})
        payload = {
            "kind": "ask_resolved",
            "ask": ask,
            "run": record.run,
            "status": AskStatus.ANSWERED,
            "value": value,
            "user": principal.user,
            "client": client,
        }
        if info.status is not AskStatus.OPEN:
            # The same answer again, because the first one's acknowledgement was lost: it still wins.
            is_repeat = info.resolution == self._body(payload) + b"}"
            self.measures.asks["repeated" if is_repeat else "late"] += 1
            return _outcome(info, is_winner=is_repeat)
        self.outboxes.check(session.tenant)
        trace = traceparent or record.traceparent
        item_id = ask_item_id(session, ask)
        item = encode_item(
            ItemKind.ANSWER,
            item_id,
            session,
            int(self.wall_clock() * 1000),
            client=client,
            user=principal.user,
            run=record.run,
            ask=ask,
            payload={"status": AskStatus.ANSWERED, "value": value},
            traceparent=trace,
        )
        outcome = await self._resolve(session, ask, AskStatus.ANSWERED, payload, item, item_id)
        self.measures.asks["answered" if outcome.is_winner else "late"] += 1
        log.info("ask_answered", is_winner=outcome.is_winner, trace_id=trace_id(trace))
        return outcome

    def on_resolved(self, key: bytes, ask: AskId) -> None:
        """A notice from the bus."""
        self.waits.notify((key, ask))

    async def _resolve(
        self,
        session: SessionRef,
        ask: AskId,
        status: AskStatus,
        payload: dict[str, Any],
        item: bytes = b"",
        item_id: str = "",
    ) -> AnswerOutcome:
        body = self._body(payload)

        request = Answer(session, ask, status, body, item, item_id)
        outcome, was_unknown = await self.attempts.noted(
            lambda: self.deadlines.note(session, int(self.outbox.retry_seconds * 1000)),
            lambda due_ms: self.exchange.resolve_ask(replace(request, due_ms=due_ms)),
            _is_stale,
        )
        if isinstance(outcome, AskRefused):
            raise _refusal(outcome.reason)
        self._tell(session, outcome.ask)
        self.waits.notify((session.key, ask))
        # An attempt that was not heard may have been the first one: then what won is word for word ours.
        is_ours = was_unknown and outcome.ask.resolution == body + b"}"
        is_winner = outcome.is_winner or is_ours
        if is_winner and item:
            self.outboxes.poke(session)
        return _outcome(outcome.ask, is_winner=is_winner)

    def _body(self, payload: dict[str, Any]) -> bytes:
        given = {name: value for name, value in payload.items() if value is not None or name == "value"}
        return make_item(given, self.limits.message_bytes).body

    def _tell(self, session: SessionRef, info: AskInfo) -> None:
        if info.line is not None and info.gateways:
            self.notes.note(session, Appended((), info.line, info.head, info.live, info.gateways))

    def _record(self, info: AskInfo) -> AskRecord:
        try:
            return decode_record(info.record)
        except msgspec.DecodeError:
            log.exception("ask_record_unreadable")
            raise RelayError(ErrorCode.INTERNAL, "the ask cannot be read") from None

    def _expiry_ms(self, seconds: float | None) -> int:
        longest = self.settings.max_expires_seconds
        wanted = self.settings.default_expires_seconds if seconds is None else seconds
        if not 1 <= wanted <= longest:
            raise RelayError(
                ErrorCode.BAD_REQUEST, f"expires_in must be 1 to {longest:g} seconds", {"limit_seconds": longest}
            )
        return int(wanted * 1000)

    def _check_size(self, value: Any) -> None:
        size = len(msgspec.json.encode(value))
        if size > MAX_ANSWER_BYTES:
            message = f"the answer has {size} bytes, at most {MAX_ANSWER_BYTES} are allowed"
            raise RelayError(ErrorCode.TOO_LARGE, message, {"limit_bytes": MAX_ANSWER_BYTES})


def _outcome(info: AskInfo, *, is_winner: bool) -> AnswerOutcome:
    return AnswerOutcome(is_winner, info.status, info.resolution, info.seq)


def _is_stale(outcome: object) -> bool:
    return isinstance(outcome, AskRefused) and outcome.reason is AskRefusal.DUE_STALE


def _refusal(reason: AskRefusal) -> RelayError:
    match reason:
        case AskRefusal.NOT_FOUND:
            return RelayError(ErrorCode.NOT_FOUND, "there is no such ask; outcomes are kept for a while only")
        case AskRefusal.TOO_MANY:
            return RelayError(ErrorCode.OVER_LIMIT, "too many asks of this session are open", after_ms=5_000)
        case AskRefusal.CONFLICT:
            return RelayError(ErrorCode.CONFLICT, "another ask has this id", {"reason": "ask_exists"})
        case AskRefusal.RUN_ENDED:
            return RelayError(
                ErrorCode.FENCED, "the run has ended: nobody waits for an answer", {"reason": "run_ended"}
            )
        case AskRefusal.OUTBOX_FULL:
            return RelayError(ErrorCode.OUTBOX_FULL, "the agent does not take what was sent before; try again later")
        case AskRefusal.GONE:
            return RelayError(ErrorCode.GONE, "the session was deleted")
        case AskRefusal.DUE_STALE:
            return RelayError(
                ErrorCode.UNAVAILABLE, "the deadline could not be noted in time", {"outcome": "not_written"}
            )
        case _:
            assert_never(reason)


__all__ = ["MAX_WAIT_SECONDS", "AnswerOutcome", "Asks"]
