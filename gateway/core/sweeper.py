"""Does what is overdue in sessions whose gateway may be dead: leases, expiries, windows, outboxes (G8, design.md 6).

About once a second each gateway looks at all shards of the index of deadlines. A shard's preferred gateway goes at the
deadline, the others two seconds later. Two sweepers do no harm: the session's own script decides. Redis keeps the time.
"""

import asyncio
import random
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from gateway.core.ingest import AppendNotes
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionRef, ref_of_key
from gateway.ports import DUE_SHARDS, Appended, Deadlines, Due, Exchange, StoreUnavailable, SweepResult

log = structlog.get_logger()

PASS_SECONDS: Final = 1.0
JITTER: Final = 0.2
"""Of the pause between two passes, so that gateways do not look at the same moment."""
OTHERS_WAIT_MS: Final = 2_000
SESSIONS_A_SHARD: Final = 64
"""In one pass; what is more comes in the next one, which then follows at once."""
HURRIED_PASSES: Final = 20
"""That follow at once; then there is a pause all the same."""
SWEEPS_AT_ONCE: Final = 16
FAILED_AGAIN_MS: Final = 2_000
"""A session whose sweep failed goes behind the others of its shard: those that always fail must not keep them out."""


class Preference(Protocol):
    """Who is preferred for what (core/peers.py)."""

    def is_preferred(self, thing: str) -> bool: ...


class Outboxes(Protocol):
    """core/relay.py."""

    def poke(self, session: SessionRef) -> None: ...


class Sweeper:
    """`run` for ever."""

    def __init__(
        self,
        deadlines: Deadlines,
        exchange: Exchange,
        peers: Preference,
        outboxes: Outboxes,
        notes: AppendNotes,
        measures: Measures,
        rng: random.Random,
    ) -> None:
        self._deadlines = deadlines
        self._exchange = exchange
        self._peers = peers
        self._outboxes = outboxes
        self._notes = notes
        self._measures = measures
        self._rng = rng
        self._has_failed = False

    async def run(self) -> None:
        hurried = 0
        while True:
            hurried = hurried + 1 if await self.sweep_all() and hurried < HURRIED_PASSES else 0
            if not hurried:
                await asyncio.sleep(PASS_SECONDS * self._rng.uniform(1 - JITTER, 1 + JITTER))

    async def sweep_all(self) -> bool:
        """One pass over all shards. True: there was more than fits into it. Redis away: the next pass is soon."""
        failed_before = self._measures.sweeps["failed"]
        async with asyncio.TaskGroup() as group:
            reads = [group.create_task(self._overdue(shard)) for shard in range(DUE_SHARDS)]
        found = [read.result() for read in reads]
        if self._measures.sweeps["failed"] == failed_before:
            self._has_failed = False  # in a cluster some shards may fail alone, and for long
        mine = [due for dues, _ in found for due in dues]
        for first in range(0, len(mine), SWEEPS_AT_ONCE):
            if not await self._sweep_some(mine[first : first + SWEEPS_AT_ONCE]):
                return False
        return any(is_full for _, is_full in found)

    async def _overdue(self, shard: int) -> tuple[list[Due], bool]:
        """Those that are ours to sweep now, oldest first, and whether there may be more of them."""
        try:
            dues = await self._deadlines.due(shard, SESSIONS_A_SHARD)
        except StoreUnavailable as exc:
            self._note_failure(exc.reason)
            return [], False
        if not self._peers.is_preferred(f"due:{shard}"):
            dues = [due for due in dues if due.overdue_ms >= OTHERS_WAIT_MS]
        return dues, len(dues) >= SESSIONS_A_SHARD

    async def _sweep_some(self, dues: Sequence[Due]) -> bool:
        """False: Redis answered for none of them. One that does not work must not keep the others waiting."""
        async with asyncio.TaskGroup() as group:
            sweeps = [group.create_task(self._sweep(due)) for due in dues]
        return any(sweep.result() for sweep in sweeps)

    async def _sweep(self, due: Due) -> bool:
        """False: its entry is as it was. An entry whose state is not there yet is kept by `settle`."""
        try:
            session = ref_of_key(due.session)
        except ValueError:
            log.exception("due_entry_unreadable", shard=due.shard)
            return await self._settle(due, None)
        try:
            result = await self._exchange.sweep(session)
        except StoreUnavailable as exc:
            self._note_failure(exc.reason)
            return await self._settle(due, FAILED_AGAIN_MS)
        self._tell(session, result)
        return await self._settle(due, result.next_in_ms if result.found else None)

    async def _settle(self, due: Due, next_in_ms: int | None) -> bool:
        try:
            await self._deadlines.settle(due, next_in_ms)
        except StoreUnavailable as exc:
            self._note_failure(exc.reason)
            return False
        return True

    def _tell(self, session: SessionRef, result: SweepResult) -> None:
        self._measures.sweeps["ok" if result.found else "absent"] += 1
        for event in result.events:
            self._measures.sweeps[event] += 1
            if event == "abandoned":
                self._measures.runs_ended[event] += 1
        if result.line is not None and result.gateways:
            self._notes.note(session, Appended((), result.line, result.head, True, result.gateways))
        if result.has_outbox:
            self._outboxes.poke(session)

    def _note_failure(self, reason: str) -> None:
        self._measures.sweeps["failed"] += 1
        if not self._has_failed:
            self._has_failed = True
            log.warning("sweep_failed", reason=reason)


__all__ = ["OTHERS_WAIT_MS", "PASS_SECONDS", "Sweeper"]
