"""Copies accepted items from a session's outbox to its inbox shard: in order, at least once, one task a session (G12).

Started by the gateway that accepted (`poke`), else by the sweep. What does not fit stays in the outbox. Must never
remove an item that is not in the inbox, nor hold up its caller.
"""

from itertools import islice
from typing import Final
from zlib import crc32

import structlog

from gateway.core.attempts import Attempts
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionKey, SessionRef, Tenant
from gateway.ports import Clock, Exchange, Inbox

log = structlog.get_logger()

SESSIONS_AT_ONCE: Final = 32
MAX_WAITING: Final = 20_000
"""Sessions that wait for a task; beyond it the sweep finds them."""
ITEMS_A_COPY: Final = 32
FULL_SECONDS: Final = 2.0
"""So long a shard that was full is taken to be full: input is refused before it is accepted."""
MAX_FULL: Final = 1_000


def inbox_shard(session: SessionKey, shards: int) -> int:
    """One shard a session, so that its items stay in order."""
    return crc32(session) % shards


class Relay:
    """One per gateway."""

    def __init__(
        self,
        exchange: Exchange,
        inbox: Inbox,
        attempts: Attempts,
        owner: TaskOwner,
        measures: Measures,
        clock: Clock,
        *,
        shards: int,
    ) -> None:
        self._exchange = exchange
        self._inbox = inbox
        self._attempts = attempts
        self._owner = owner
        self._measures = measures
        self._clock = clock
        self._shards = shards
        self._waiting: dict[SessionKey, SessionRef] = {}
        """In the order in which they were poked."""
        self._running: set[SessionKey] = set()
        self._full: dict[Tenant, float] = {}
        """Tenant -> until when its inbox counts as full."""

    def poke(self, session: SessionRef) -> None:
        """Something is in its outbox. Never blocks; one more look follows when a copy is under way."""
        if session.key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            self._measures.relays["left"] += 1
            return
        self._waiting[session.key] = session
        self._start_next()

    def check(self, tenant: Tenant) -> None:
        """Raises RelayError INBOX_FULL when the tenant's inbox was full a moment ago: nothing more is accepted then."""
        if self.is_full(tenant):
            raise RelayError(
                ErrorCode.INBOX_FULL, "the agents do not take what was sent before; try again later", after_ms=2_000
            )

    def is_full(self, tenant: Tenant) -> bool:
        until = self._full.get(tenant)
        if until is None:
            return False
        if self._clock() < until:
            return True
        del self._full[tenant]
        return False

    def _start_next(self) -> None:
        for key, session in list(islice(self._waiting.items(), SESSIONS_AT_ONCE + len(self._running))):
            if len(self._running) >= SESSIONS_AT_ONCE:
                return
            if key not in self._running:
                del self._waiting[key]
                self._running.add(key)
                self._owner.start("relay", self._copy(session))

    async def _copy(self, session: SessionRef) -> None:
        try:
            while await self._copy_some(session):
                pass
        except RelayError as exc:
            self._measures.relays["failed"] += 1
            log.info("relay_left_to_sweep", reason=exc.message)
        finally:
            self._running.discard(session.key)
            self._start_next()

    async def _copy_some(self, session: SessionRef) -> bool:
        """True: there may be more. An attempt without an answer is repeated: consumers drop what comes twice."""
        items = await self._attempts.answer(lambda: self._exchange.outbox(session, ITEMS_A_COPY))
        if not items:
            return False
        shard = inbox_shard(session.key, self._shards)
        bodies = [item.item for item in items]
        if not await self._attempts.answer(lambda: self._inbox.deposit(session.tenant, shard, bodies)):
            self._note_full(session.tenant)
            return False
        self._full.pop(session.tenant, None)
        await self._attempts.answer(lambda: self._exchange.relayed(session, [item.entry for item in items]))
        self._measures.relays["ok"] += 1
        self._measures.relayed_items += len(items)
        return len(items) == ITEMS_A_COPY

    def _note_full(self, tenant: Tenant) -> None:
        self._measures.relays["full"] += 1
        if tenant not in self._full:
            log.warning("inbox_full", tenant=tenant)
        while len(self._full) >= MAX_FULL:
            del self._full[next(iter(self._full))]
        self._full[tenant] = self._clock() + FULL_SECONDS


__all__ = ["FULL_SECONDS", "ITEMS_A_COPY", "SESSIONS_AT_ONCE", "Relay", "inbox_shard"]
