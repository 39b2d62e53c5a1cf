"""A client's messages to its agent: durable in the outbox, shown as `echo`, only then accepted (G12).

Contiguous numbers make them exactly one each, whatever is sent again by whatever way. Called by visits and by HTTP.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from gateway.core.asks import Outboxes
from gateway.core.attempts import Attempts
from gateway.core.connection import Connection
from gateway.core.ingest import AppendNotes
from gateway.core.quotas import Quotas
from gateway.core.rates import Rates
from gateway.core.routing.plans import TableFor, shipped_table
from gateway.domain.access.principal import Principal
from gateway.domain.exchange.control import InputMessage, read_input
from gateway.domain.exchange.items import ItemKind, encode_item, input_item_id
from gateway.domain.routing.table import ANY, MessageType
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, SessionRef, UserId
from gateway.ports import (
    Appended,
    Clock,
    Deadlines,
    Exchange,
    InputAccepted,
    InputRefusal,
    InputRefused,
    InputRequest,
)
from gateway.settings import InputSettings, OutboxSettings


@dataclass(frozen=True, slots=True)
class Inputs:
    """One per gateway. Everything raises RelayError only."""

    exchange: Exchange
    deadlines: Deadlines
    outboxes: Outboxes
    notes: AppendNotes
    attempts: Attempts
    settings: InputSettings
    outbox: OutboxSettings
    clock: Clock
    wall_clock: Callable[[], float]
    quotas: Quotas | None = None
    table_for: TableFor = shipped_table
    rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        rates = Rates(self.settings.rate_per_second, self.settings.rate_burst, self.clock)
        object.__setattr__(self, "rates", rates)

    async def by_socket(self, connection: Connection, number: Any, payload: Any) -> dict[str, Any]:
        """The `accepted` payload. Refused on a connection that is about to be replaced: only the newest one writes."""
        if connection.is_previous or connection.is_fenced:
            raise _fenced()
        message = self._read(connection.session.ref, connection.client, connection.principal.user, number, payload)
        request = self._request(connection.session.ref, connection.client, connection.principal.user, message)
        return await self._accept(
            replace(request, connection=connection.id, generation=connection.generation), message.number
        )

    async def by_http(
        self,
        session: SessionRef,
        client: ClientId,
        principal: Principal,
        number: Any,
        payload: Any,
        traceparent: str | None,
    ) -> dict[str, Any]:
        """The same for a client that needs no connection. The caller has checked who it is."""
        message = self._read(session, client, principal.user, number, payload)
        if message.traceparent is None:
            message = replace(message, traceparent=traceparent)
        request = self._request(session, client, principal.user, message)
        may_create = principal.may_create(session.session)
        return await self._accept(replace(request, may_create=may_create), message.number)

    def _read(self, session: SessionRef, client: ClientId, user: UserId, number: Any, payload: Any) -> InputMessage:
        wait = self.rates.take((session.key, client))
        if wait:
            raise RelayError(
                ErrorCode.OVER_LIMIT,
                f"at most {self.settings.rate_per_second:g} messages a second",
                {"limit_per_second": self.settings.rate_per_second},
                after_ms=int(wait * 1000) + 1,
            )
        message = read_input(number, payload, client, user, self.settings.message_bytes)
        self.outboxes.check(session.tenant)
        if self.quotas is not None:
            self.quotas.check_append(session, 1, len(message.echo_body), is_person=True)
        return message

    def _request(self, session: SessionRef, client: ClientId, user: UserId, message: InputMessage) -> InputRequest:
        item_id = input_item_id(session, client, message.number)
        now_ms = int(self.wall_clock() * 1000)
        table = self.table_for(session.tenant, session.key)
        kind = message.payload.get("kind")
        deadline_seconds = table.route(MessageType.USER_TEXT, kind if isinstance(kind, str) else ANY).deadline_seconds
        item = encode_item(
            ItemKind.INPUT,
            item_id,
            session,
            now_ms,
            client=client,
            user=user,
            seq=message.number,
            payload=message.payload,
            traceparent=message.traceparent,
            expires_at=None if deadline_seconds is None else now_ms + int(deadline_seconds * 1000),
            route=None if deadline_seconds is None else table.name,
        )
        return InputRequest(session, client, user, message.number, message.digest, message.echo_body, item, item_id)

    async def _accept(self, request: InputRequest, number: int) -> dict[str, Any]:
        session = request.session
        outcome, was_unknown = await self.attempts.noted(
            lambda: self.deadlines.note(session, int(self.outbox.retry_seconds * 1000)),
            lambda due_ms: self.exchange.accept_input(replace(request, due_ms=due_ms)),
            _is_stale,
        )
        if isinstance(outcome, InputRefused):
            raise _refusal(outcome, number)
        is_repeat = outcome.is_repeat and not was_unknown  # an attempt that was not heard may have been the first
        if not outcome.is_repeat:
            self.notes.note(session, _published(outcome))
        if not is_repeat:
            self.outboxes.poke(session)
        accepted = {"kind": "accepted", "what": "input", "seq": number, "input_seq": outcome.number}
        return accepted | ({"repeat": True} if is_repeat else {})


def _published(accepted: InputAccepted) -> Appended:
    return Appended((), accepted.line, accepted.head, bool(accepted.gateways), accepted.gateways)


def _is_stale(outcome: object) -> bool:
    return isinstance(outcome, InputRefused) and outcome.reason is InputRefusal.DUE_STALE


def _fenced() -> RelayError:
    return RelayError(
        ErrorCode.FENCED, "a newer connection of this client writes: send it there", {"reason": "superseded"}
    )


def _refusal(refused: InputRefused, number: int) -> RelayError:
    details = {"seq": number, "expected": refused.expected}
    match refused.reason:
        case InputRefusal.CONFLICT:
            return RelayError(ErrorCode.CONFLICT, f"input {number} was accepted with another body", details)
        case InputRefusal.EXPECTED:
            return RelayError(ErrorCode.EXPECTED, f"input {refused.expected} comes next, not {number}", details)
        case InputRefusal.SUPERSEDED:
            return _fenced()
        case InputRefusal.OUTBOX_FULL:
            return RelayError(
                ErrorCode.OUTBOX_FULL, "the agent does not take what was sent before; try again later", after_ms=2_000
            )
        case InputRefusal.NOT_FOUND:
            return RelayError(ErrorCode.NOT_FOUND, "there is no such session")
        case InputRefusal.DUE_STALE:
            return RelayError(
                ErrorCode.UNAVAILABLE, "the deadline could not be noted in time", {"outcome": "not_written"}
            )
        case _:
            assert_never(refused.reason)


__all__ = ["Inputs"]
