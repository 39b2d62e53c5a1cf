"""Repairs a session's live connections from the log: a hole, a notice of a higher head, another fork (design.md 4).

One read per session, however many clients it has; what arrives meanwhile is held, bounded. Called by the hub.
"""

import asyncio
import random

from gateway.core.connection import Connection
from gateway.core.held import HeldFrames
from gateway.core.local_session import LocalSession
from gateway.core.pauses import Pauses
from gateway.core.placement import take_missed_cuts
from gateway.core.reclaims import Reclaims
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.sessions.position import hole
from gateway.ports import LogStore, Page, StoreUnavailable
from gateway.settings import LimitSettings


class Repair:
    """One per gateway."""

    def __init__(
        self,
        store: LogStore,
        limits: LimitSettings,
        measures: Measures,
        owner: TaskOwner,
        rng: random.Random,
        reclaims: Reclaims,
        *,
        overtaking_seconds: float = 0.0,
    ) -> None:
        """`overtaking_seconds`: so long what is missing may still be on its way."""
        self._overtaking_seconds = overtaking_seconds
        self._store = store
        self._limits = limits
        self._measures = measures
        self._owner = owner
        self._rng = rng
        self._reclaims = reclaims

    def hold(self, session: LocalSession, line: bytes, seq: int, text: bytes, raw: bytes, cause: str) -> None:
        """This frame does not follow for some connection: repair, and offer it again afterwards."""
        self.start(session, cause)
        if session.repair is not None:
            session.repair.hold(line, seq, text, raw)

    def start(self, session: LocalSession, cause: str) -> None:
        """Read what is missing, unless a repair of this session is reading already."""
        if session.repair is None:
            session.repair = HeldFrames(self._limits.held_bytes)
            self._owner.start("repair", self._run(session, session.repair, cause))

    def reclaim(self, session: LocalSession) -> None:
        """The session's meta is gone or belongs to another incarnation: its routes are claimed again."""
        for connection in session.connections:
            if connection.generation and not connection.is_ending:
                self._reclaims.add(connection)

    async def _run(self, session: LocalSession, held: HeldFrames, cause: str) -> None:
        pauses = Pauses(self._rng)
        try:
            if self._overtaking_seconds and await self._comes_late(session, held):
                return
            self._measures.repairs[cause] += 1
            while live := [c for c in session.connections if c.is_live]:
                session.repair = held = HeldFrames(self._limits.held_bytes)
                line_before = session.line
                known = [(c, c.line, c.sent_seq) for c in live]
                after_seq = min(c.sent_seq for c in live)
                try:
                    page = await self._store.page(session.ref, after_seq, self._limits.replay_page_bytes)
                except StoreUnavailable:
                    await pauses.wait()
                    continue
                if page is not None and session.line not in (line_before, page.log.line):
                    # A claim brought newer news: judged by this page, everything would be a gap.
                    await pauses.wait()
                    continue
                if page is None or any(
                    c.line == line == page.log.line and page.log.head + page.log.held < seq for c, line, seq in known
                ):
                    self.reclaim(session)
                    return
                self._apply(session, page, after_seq)
                if self._release(session, held) and not _is_behind(session):
                    return
                if page.log.held and after_seq >= page.log.head:
                    await pauses.wait()  # what is missing may not be seen yet
                else:
                    pauses = Pauses(self._rng)
        finally:
            session.repair = None

    async def _comes_late(self, session: LocalSession, held: HeldFrames) -> bool:
        """It was only overtaken (on a cluster, where messages come by several ways): nothing needs to be read."""
        await asyncio.sleep(self._overtaking_seconds)
        held.frames.sort(key=lambda frame: frame[1])
        return self._release(session, held) and not _is_behind(session)

    def _apply(self, session: LocalSession, page: Page, after_seq: int) -> None:
        """Settle each live connection on the page's log and give it what it lacks of the page."""
        session.note(page.log)
        shared = session.connections[0].shared if session.connections else None
        texts = [(e.seq, shared.encode(session, e.seq, e.frame)) for e in page.entries] if shared is not None else []
        for connection in session.connections:
            if not connection.is_live:
                continue
            connection.settle_on(page.log)
            if take_missed_cuts(connection, page):
                continue  # it reads the log by itself now
            if connection.is_to_be_rebuilt or connection.cuts is not None:
                connection.fall_behind()  # its own way through the log rebuilds, and cuts
                continue
            if connection.sent_seq < after_seq:
                continue  # it was rolled back: the next round reads from its position
            for seq, text in texts:
                if seq <= connection.sent_seq:
                    continue
                if seq > connection.sent_seq + 1:
                    self._flush(connection)
                    connection.announce_gap(hole(connection.sent_seq, seq - 1), page.log)
                connection.queue(seq, text)
            if not texts and connection.sent_seq < page.log.head:
                connection.announce_gap(hole(connection.sent_seq, page.log.head), page.log)
            self._flush(connection)

    def _release(self, session: LocalSession, held: HeldFrames) -> bool:
        """Offer what came during the read. False: something of it does not follow."""
        is_whole = not held.is_overflown
        for line, seq, text in held.frames:
            if line == session.line:
                session.head_seen = max(session.head_seen, seq)
            for connection in session.connections:
                if not connection.is_live or (line == connection.line and seq <= connection.sent_seq):
                    continue
                if line == connection.line and seq == connection.sent_seq + 1:
                    connection.queue(seq, text)
                else:
                    is_whole = False
        for connection in session.connections:
            self._flush(connection)
        return is_whole

    def _flush(self, connection: Connection) -> None:
        if connection.out is not None:
            self._measures.messages_delivered += len(connection.out) if isinstance(connection.out, list) else 1
            before = connection.sent_bytes
            connection.flush()
            self._measures.bytes_delivered += connection.sent_bytes - before


def _is_behind(session: LocalSession) -> bool:
    return any(c.is_live and (c.line != session.line or c.sent_seq < session.head_seen) for c in session.connections)


__all__ = ["Repair"]
