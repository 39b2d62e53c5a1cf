"""Where pushes meet the route table: text to the log and copies to agents, control to who is there, jobs to the inbox.

Text is always appended; the table only says who gets it besides. A table without copies costs a push one look.
"""

from dataclasses import dataclass
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final

import msgspec

from gateway.core.ingest import Ingest
from gateway.core.routing.broadcast import Broadcast
from gateway.core.routing.desk import RouteDesk
from gateway.core.routing.jobs import Job, Jobs
from gateway.domain.measures import Measures
from gateway.domain.routing.rules import GATEWAYS_TEXT, PROTOCOL_KINDS, RUN_KINDS
from gateway.domain.routing.table import MessageType, Route, RouteChannel, RouteTable
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ProducerName, SessionRef, UserId
from gateway.ports import Appended, Order, ProducerRef, Registered


class _Kind(msgspec.Struct):
    kind: str


_kind_of: Final = msgspec.json.Decoder(_Kind).decode


@dataclass(frozen=True, slots=True)
class Sent:
    """`results`: one for each message: `status` and `seq` (appended) or `id` (a job)."""

    results: list[dict[str, Any]]
    is_live: bool


@dataclass(frozen=True, slots=True)
class Intake:
    """One per gateway; stands before core.ingest with the same calls. Raises RelayError only."""

    ingest: Ingest
    desk: RouteDesk
    jobs: Jobs
    broadcast: Broadcast
    measures: Measures

    # ---- text ----------------------------------------------------------------------------------------------------

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
        traceparent: str | None = None,
    ) -> Appended:
        """As core.ingest. With copies it answers when they are in the inbox, too: a repeat puts them there again."""
        table = self.desk.table(session)
        copied = _copied(table, items) if table.copies else ()
        if copied:
            self.jobs.check(session.tenant)
        appended = await self.ingest.append(
            session,
            items,
            producer=producer,
            first_number=first_number,
            owner=owner,
            idempotency_key=idempotency_key,
            order=order,
            kept_ms=kept_ms,
        )
        self.desk.count(table, len(items))
        if copied:
            by = _By(session, producer, first_number, idempotency_key)
            jobs = [
                Job(_copy_id(by, index, appended, items[index]), MessageType.MODEL_TEXT, kind, items[index].body + b"}")
                for index, kind in copied
                if appended.results[index].refused is None
            ]
            if jobs:
                await self.jobs.put(session, table, jobs, traceparent)
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
        await self.ingest.consume(session, count, producer, first_number, code, order)

    async def register(self, session: SessionRef, name: ProducerName, owner: UserId | None) -> Registered:
        return await self.ingest.register(session, name, owner)

    async def delete(self, session: SessionRef) -> bool:
        return await self.ingest.delete(session)

    # ---- what is no text -----------------------------------------------------------------------------------------

    async def send(
        self,
        session: SessionRef,
        message_type: MessageType,
        items: tuple[Item, ...],
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
    ) -> Sent:
        """Control and post_processing. What is durable is stored first: then what remains cannot fail.

        RelayError: nothing was sent, or what was stored is stored again by a repeat with the same key once only.
        """
        if self.ingest.quotas is not None:
            self.ingest.quotas.check_append(session, len(items), sum(len(item.body) for item in items))
        table = self.desk.table(session)
        kinds = [_checked_kind(message_type, item) for item in items]
        routes = [table.route(message_type, kind) for kind in kinds]
        results: list[dict[str, Any]] = [{} for _ in items]
        to_agent = [index for index, route in enumerate(routes) if route.channel.leads_to_agent]
        if to_agent:
            self.jobs.check(session.tenant)
            base = token_hex(12) if idempotency_key is None else f"key:{idempotency_key}"
            jobs = [
                Job(f"job:{_part(session)}:{base}:{i}", message_type, kinds[i], items[i].body + b"}") for i in to_agent
            ]
            await self.jobs.put(session, table, jobs, traceparent)
            for index, job in zip(to_agent, jobs, strict=True):
                results[index] = {"status": "queued", "id": job.ident}
        live = False
        to_people = [index for index in range(len(items)) if index not in to_agent]
        if to_people:
            live = await self._show(session, table, items, routes, to_people, results, idempotency_key)
        self.desk.count(table, len(items))
        return Sent(results, live)

    async def _show(
        self,
        session: SessionRef,
        table: RouteTable,
        items: tuple[Item, ...],
        routes: list[Route],
        indexes: list[int],
        results: list[dict[str, Any]],
        idempotency_key: str | None,
    ) -> bool:
        """Control for people. Whether somebody is there."""
        gateways = await self.broadcast.gateways(session, routes[indexes[0]])
        kept = [
            index
            for index in indexes
            if routes[index].is_durable or (not gateways and _is_kept_for_later(routes[index]))
        ]
        live = bool(gateways)
        if kept:
            appended = await self.ingest.append(
                session, tuple(items[index] for index in kept), idempotency_key=idempotency_key, is_counted=True
            )
            live = live or appended.live
            for index, result in zip(kept, appended.results, strict=True):
                results[index] = {"status": "duplicate" if result.duplicate else "ok", "seq": result.seq}
                if not routes[index].is_durable:
                    self.measures.route_fallbacks[table.name] += 1
        for index in indexes:
            if index not in kept:
                self.broadcast.send(session, routes[index], items[index].body + b"}", gateways)
                results[index] = {"status": "sent"}
        return live


def _is_kept_for_later(route: Route) -> bool:
    """Nobody is there: HTTP, that is the log, is its second way."""
    return route.fallback is RouteChannel.HTTP


def _checked_kind(message_type: MessageType, item: Item) -> str:
    kind = _kind_of(item.body + b"}").kind
    if message_type is MessageType.CONTROL and kind in PROTOCOL_KINDS | RUN_KINDS | GATEWAYS_TEXT:
        raise RelayError(ErrorCode.BAD_REQUEST, f"control kind `{kind}` is the protocol's own; choose another name")
    return kind


@dataclass(frozen=True, slots=True)
class _By:
    session: SessionRef
    producer: ProducerRef | None
    first_number: int
    idempotency_key: str | None


def _copied(table: RouteTable, items: tuple[Item, ...]) -> tuple[tuple[int, str], ...]:
    """Which of them agents get, with their kinds. Text of runs never."""
    found = []
    for index, item in enumerate(items):
        if item.cls is EntryClass.OTHER and not item.run:
            kind = _kind_of(item.body + b"}").kind
            if table.route(MessageType.MODEL_TEXT, kind).channel.leads_to_agent and kind not in RUN_KINDS:
                found.append((index, kind))
    return tuple(found)


def _copy_id(by: _By, index: int, appended: Appended, item: Item) -> str:
    """The same for a repeat. A message without number and key is known by its place, and by what it says: after lost
    writes another one may have the place."""
    if by.producer is not None:
        place = f"{by.producer.name}:{by.producer.epoch}:{by.first_number + index}"
    elif by.idempotency_key is not None:
        place = f"key:{by.idempotency_key}:{index}"
    else:
        place = f"{appended.results[index].seq}:{sha256(item.body).hexdigest()[:16]}"
    return f"copy:{_part(by.session)}:{place}"


def _part(session: SessionRef) -> str:
    """No session's ids look like another's (G12)."""
    return session.session.replace("%", "%25").replace(":", "%3A")


__all__ = ["Intake", "Sent"]
