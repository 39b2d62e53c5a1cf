"""Jobs for agents and processors: in the inbox before they are accepted, with a stable id each (G12).

What a producer pushes as post_processing, and copies of messages that the route table sends by webhook or queue.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from gateway.core.attempts import Attempts
from gateway.core.relay import inbox_shard
from gateway.domain.exchange.items import ItemKind, encode_item
from gateway.domain.routing.table import MessageType, RouteTable
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionRef, Tenant
from gateway.ports import Inbox


class Fullness(Protocol):
    """core/relay.py."""

    def check(self, tenant: Tenant) -> None:
        """Raises RelayError INBOX_FULL when its inbox was full a moment ago."""
        ...


class Job(NamedTuple):
    ident: str
    """Stable: consumers drop what comes again under it."""
    message_type: MessageType
    kind: str
    payload: bytes
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """One per gateway. Raises RelayError only."""

    inbox: Inbox
    attempts: Attempts
    fullness: Fullness
    shards: int
    wall_clock: Callable[[], float]

    def check(self, tenant: Tenant) -> None:
        """Before anything else is done that a refusal could not take back. RelayError INBOX_FULL."""
        self.fullness.check(tenant)

    async def put(self, session: SessionRef, table: RouteTable, jobs: Sequence[Job], traceparent: str | None) -> None:
        """Whole or not at all, in order. RelayError INBOX_FULL, UNAVAILABLE: then they may be there, ask again."""
        now_ms = int(self.wall_clock() * 1000)
        bodies = [self._item(session, table, job, traceparent, now_ms) for job in jobs]
        shard = inbox_shard(session.key, self.shards)
        if not await self.attempts.answer(lambda: self.inbox.deposit(session.tenant, shard, bodies)):
            raise RelayError(ErrorCode.INBOX_FULL, "the agents do not take what was sent before", after_ms=2_000)

    @staticmethod
    def _item(session: SessionRef, table: RouteTable, job: Job, traceparent: str | None, now_ms: int) -> bytes:
        deadline_seconds = table.route(job.message_type, job.kind).deadline_seconds
        return encode_item(
            ItemKind.POST_PROCESSING,
            job.ident,
            session,
            None,  # a repeat would have another one
            accepted_at=now_ms,
            type=job.message_type.value,
            payload=msgspec.Raw(job.payload),
            expires_at=None if deadline_seconds is None else now_ms + int(deadline_seconds * 1000),
            route=None if deadline_seconds is None else table.name,
            traceparent=traceparent,
        )


__all__ = ["Job", "Jobs"]
