"""What a client asks for beside text: interrupt, pause, resume, cancel, answer; over its socket or HTTP (A20).

Each is idempotent, and acknowledged when it holds for every connection that it concerns. Must never end a run because
somebody left. Called by visits and by the control API.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never

import msgspec
import structlog

from gateway.core.asks import AnswerOutcome, Outboxes
from gateway.core.attempts import Attempts
from gateway.core.client_notices import ClientNotices
from gateway.core.connection import Connection
from gateway.core.ingest import AppendNotes
from gateway.domain.access.principal import Principal
from gateway.domain.exchange.control import (
    AnswerTo,
    Cancel,
    Control,
    Interrupt,
    Pause,
    Resume,
    echo_of,
    read_control,
)
from gateway.domain.exchange.items import ItemKind, encode_item, run_item_id
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import ClientId, RunId, SessionRef, UserId
from gateway.ports import (
    Appended,
    AskId,
    Clock,
    Deadlines,
    EndedBy,
    LogStore,
    RunRefusal,
    RunRefused,
    RunStore,
    Seen,
    Stopped,
    StopRun,
)
from gateway.settings import OutboxSettings

log = structlog.get_logger()


class Asks(Protocol):
    """core/asks.py."""

    async def answer(
        self,
        session: SessionRef,
        principal: Principal,
        client: ClientId,
        ask: AskId,
        value: Any,
        traceparent: str | None = None,
    ) -> AnswerOutcome: ...


@dataclass(frozen=True, slots=True)
class _By:
    """Who asks. `connection` None: over HTTP, for all connections of the client."""

    session: SessionRef
    client: ClientId
    principal: Principal
    connection: Connection | None

    @property
    def user(self) -> UserId:
        return self.principal.user


@dataclass(frozen=True, slots=True)
class ClientControl:
    """One per gateway. Everything raises RelayError only."""

    store: LogStore
    runs: RunStore
    asks: Asks
    notices: ClientNotices
    deadlines: Deadlines
    outboxes: Outboxes
    notes: AppendNotes
    attempts: Attempts
    measures: Measures
    outbox: OutboxSettings
    clock: Clock
    wall_clock: Clock

    async def by_socket(self, connection: Connection, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        """The `accepted` payload. From here on what was asked for holds for this connection."""
        by = _By(connection.session.ref, connection.client, connection.principal, connection)
        return await self._do(by, kind, fields)

    async def by_http(
        self, session: SessionRef, client: ClientId, principal: Principal, kind: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """The same for all connections of the client, wherever they are. The caller has checked who it is."""
        return await self._do(_By(session, client, principal, None), kind, fields)

    async def _do(self, by: _By, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        request = read_control(kind, fields)
        accepted = {"kind": "accepted", "what": kind, **echo_of(fields)}
        return accepted | await self._carry_out(by, request)

    async def _carry_out(self, by: _By, request: Control) -> dict[str, Any]:
        match request:
            case Interrupt():
                return await self._interrupt(by, request)
            case Cancel(run, why):
                more = {"by": by.user} | ({"why": why} if why else {})
                return _ended(run, await self._stop(by, run, EndedBy.CANCELLED, None, more))
            case Pause():
                return await self._steer(by, "pause")
            case Resume():
                return await self._steer(by, "resume")
            case AnswerTo(ask, value, traceparent):
                return await self._answer(by, ask, value, traceparent)
            case _:
                assert_never(request)

    # ---- runs --------------------------------------------------------------------------------------------------

    async def _interrupt(self, by: _By, request: Interrupt) -> dict[str, Any]:
        began = self.clock()
        seen = Seen(request.seen_seq, request.seen_at or 0) if request.seen_seq is not None else None
        stopped = await self._stop(by, request.run, EndedBy.INTERRUPTED, seen, {"by": by.user})
        self.notices.cut(by.session, by.client, request.run, seen)
        await self.notices.cut_elsewhere(stopped.client_gateways, by.session, by.client, request.run, seen)
        self.measures.interrupt_to_silence_seconds.observe(self.clock() - began)
        return _ended(request.run, stopped)

    async def _stop(self, by: _By, run: RunId, reason: EndedBy, seen: Seen | None, more: dict[str, Any]) -> Stopped:
        is_interrupt = reason is EndedBy.INTERRUPTED
        kind = ItemKind.INTERRUPT if is_interrupt else ItemKind.CANCEL
        item_id = run_item_id(by.session, run, reason)
        event = {"by": by.user, "seen": None if seen is None else seen._asdict()}
        item = encode_item(
            kind,
            item_id,
            by.session,
            int(self.wall_clock() * 1000),
            client=by.client,
            user=by.user,
            run=run,
            payload={name: value for name, value in event.items() if value is not None},
        )
        request = StopRun(
            by.session,
            run,
            reason,
            client=by.client if is_interrupt else None,
            seen=seen,
            fields=b"," + encode_json(more)[1:-1],
            item=item,
            item_id=item_id,
        )
        outcome, was_unknown = await self.attempts.noted(
            lambda: self.deadlines.note(by.session, int(self.outbox.retry_seconds * 1000)),
            lambda due_ms: self.runs.stop_run(replace(request, due_ms=due_ms)),
            _is_stale,
        )
        if isinstance(outcome, RunRefused):
            raise _refusal(outcome)
        # An attempt that was not heard may have been the one that ended it.
        outcome = replace(outcome, is_new=outcome.is_new or was_unknown)
        if outcome.is_new:
            self.outboxes.poke(by.session)
            published = Appended((), outcome.line, outcome.head, bool(outcome.gateways), outcome.gateways)
            self.notes.note(by.session, published)
            log.info("run_stopped", reason=reason.value)
        return outcome

    # ---- delivery ----------------------------------------------------------------------------------------------

    async def _steer(self, by: _By, what: str) -> dict[str, Any]:
        if by.connection is not None:
            if what == "pause":
                by.connection.pause()
            else:
                by.connection.go_on()
            return {}
        info = await self.attempts.answer(lambda: self.store.info(by.session))
        routes = () if info is None else info.routes
        gateways = {route.gateway for route in routes if route.client == by.client}
        count = self.notices.control(by.session, by.client, what)
        if not gateways and not count:
            raise RelayError(ErrorCode.NOT_FOUND, "this client has no connection", {"reason": "not_connected"})
        await self.notices.control_elsewhere(gateways, by.session, by.client, what)
        return {}

    # ---- asks --------------------------------------------------------------------------------------------------

    async def _answer(self, by: _By, ask: str, value: Any, traceparent: str | None) -> dict[str, Any]:
        outcome = await self.asks.answer(by.session, by.principal, by.client, ask, value, traceparent)
        resolution = msgspec.json.decode(outcome.resolution) if outcome.resolution else None
        return {"ask": ask, "winner": outcome.is_winner, "status": outcome.status.value, "resolution": resolution}


def _ended(run: RunId, stopped: Stopped) -> dict[str, Any]:
    """`ended`: it had ended before, and how is in its `run_end`."""
    return {"run": run, "end_seq": stopped.end_seq} | ({} if stopped.is_new else {"ended": True})


def _is_stale(outcome: object) -> bool:
    return isinstance(outcome, RunRefused) and outcome.reason is RunRefusal.DUE_STALE


def _refusal(refused: RunRefused) -> RelayError:
    match refused.reason:
        case RunRefusal.NOT_FOUND | RunRefusal.EXISTS | RunRefusal.ENDED:
            return RelayError(ErrorCode.NOT_FOUND, "there is no such run, or it ended long ago")
        case RunRefusal.GONE:
            return RelayError(ErrorCode.GONE, "the session was deleted")
        case RunRefusal.DUE_STALE:
            return RelayError(
                ErrorCode.UNAVAILABLE, "the deadline could not be noted in time", {"outcome": "not_written"}
            )
        case _:
            assert_never(refused.reason)


__all__ = ["Asks", "ClientControl"]
