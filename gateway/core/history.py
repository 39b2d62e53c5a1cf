"""History: what a connection with this cursor would get, up to a limit, without a route, a hub or a session of its own.

Reads only. The same judge, cuts, merging and snapshots as for connections do the work; what they write is collected.
Called by the HTTP handler.
"""

import asyncio
import dataclasses
from typing import Final

from gateway.core.access import Access
from gateway.core.budget import ByteBudget
from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.pages import Pages, write_pending_cut
from gateway.core.shared import Shared
from gateway.core.snapshots import NoSession, Snapshots
from gateway.domain.access.principal import Principal
from gateway.domain.access.rules import not_found
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import begin_at, judge
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionRef
from gateway.domain.wire.ws_frames import decode_texts
from gateway.ports import LogStore, Page, RunStore, StoreUnavailable
from gateway.ports.history import HistoryAnswer, HistoryRequest

MAX_AT_ONCE: Final = 32
"""Histories that are read at once; each holds its whole answer."""
WAIT_SECONDS: Final = 5.0
"""For a turn; then the client is better off elsewhere."""
READ_SECONDS: Final = 20.0
"""For an answer: recoveries may hold the budget, or Redis be slow."""
ANSWER_BYTES: Final = 1024 * 1024
"""No further page of the log is read above it. The texts of runs that left the log come whole before it."""
_STEPS: Final = 10_000
"""More than any session needs: an end for a session that changes faster than it is read."""


class _Collector:
    """ports.Link: keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.size_bytes = 0

    def write(self, frames: bytes) -> None:
        self.frames += decode_texts(frames)
        self.size_bytes += len(frames)

    def unsent_bytes(self) -> int:
        return 0

    def is_clear(self) -> bool:
        return not self.unsent_bytes()

    async def drained(self) -> None:
        return

    def ping(self, nonce: bytes) -> None:
        """Nobody looks whether it lives."""

    def idle_seconds(self) -> float | None:
        return None

    def rtt_seconds(self) -> float | None:
        return None

    def close(self, code: CloseCode, reason: str) -> None:
        """Whoever reads looks at the connection's state."""


class _NeverLive:
    """core.shared.Resumer: this connection reads for itself."""

    def catch_up(self, connection: Connection) -> None:
        """It never falls behind: it is never live."""

    async def reclaim(self, connection: Connection) -> None:
        """It has no route."""


class History:
    """One per gateway."""

    def __init__(
        self, access: Access, store: LogStore, runs: RunStore, shared: Shared, budget: ByteBudget, measures: Measures
    ) -> None:
        """`shared`: of the hub's connections. What is collected here is no delivery: its measures are not touched."""
        limits = shared.limits
        nothing = Measures()
        self._access = access
        self._store = store
        self._budget = budget
        self._measures = measures
        self._page_bytes = limits.replay_page_bytes
        self._pages = Pages(limits.merged_frame_bytes, nothing)
        self._snapshots = Snapshots(runs, limits.merged_frame_bytes)
        self._shared = Shared(limits, shared.liveness, nothing, shared.clock, shared.wall_clock, _NeverLive())
        self._shared.tagger = shared.tagger
        self._turns = asyncio.Semaphore(MAX_AT_ONCE)

    async def read(self, principal: Principal, asked: HistoryRequest) -> HistoryAnswer:
        """Raises RelayError, also NOT_FOUND for a session that is not there yet; StoreUnavailable."""
        ref = await self._access.member(principal, asked.session)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._turns.acquire()
        except TimeoutError:
            raise RelayError(ErrorCode.BUSY, "too many clients are reading, try again") from None
        try:
            async with asyncio.timeout(READ_SECONDS):
                answer = await _Reading(self, ref, principal, asked).run()
        except TimeoutError:
            raise RelayError(ErrorCode.BUSY, "too much is being read, try again") from None
        except NoSession:
            raise not_found() from None
        finally:
            self._turns.release()
        self._measures.reads["history"] += 1
        return answer

    # ---- for a reading ---------------------------------------------------------------------------------------

    def connection(self, ref: SessionRef, principal: Principal, client: ClientId | None) -> Connection:
        session = LocalSession(ref)
        made = Connection(
            self._shared,
            session,
            ident=ConnectionId(""),
            client=client or ClientId(""),
            principal=principal,
            liveness=Liveness(1.0, self._shared.clock()),
            heartbeat_seconds=1.0,
        )
        session.connections.append(made)  # a hook that refuses a frame closes those who would get it
        return made

    async def page(self, ref: SessionRef, after_seq: int) -> Page:
        """Raises NoSession."""
        async with self._budget.share(self._page_bytes):
            page = await self._store.page(ref, after_seq, self._page_bytes)
        if page is None:
            raise NoSession
        return page

    async def rebuild(self, connection: Connection) -> None:
        """One step of what comes before the retained log."""
        async with self._budget.share(self._page_bytes):
            found = await self._snapshots.step(connection, self._page_bytes)
        if found is None:
            return
        connection.session.note(found.log)
        connection.settle_on(found.log)
        if connection.is_below_log:
            self._snapshots.begin(connection, found)

    def write(self, connection: Connection, page: Page) -> None:
        self._pages.write(connection, page)


class _Reading:
    """One answer in the making."""

    def __init__(self, history: History, ref: SessionRef, principal: Principal, asked: HistoryRequest) -> None:
        self._history = history
        self._ref = ref
        self._asked = asked
        self._collector = _Collector()
        self._connection = history.connection(ref, principal, asked.client)
        self._connection.open(self._collector)
        self._left = asked.limit

    async def run(self) -> HistoryAnswer:
        since, bare_seq, connection = self._asked.since, self._asked.bare_seq, self._connection
        asked_seq = (bare_seq or 0) if since is None else since.seq
        page = await self._history.page(self._ref, asked_seq)
        log = page.log
        if since is None and bare_seq is not None:
            since = log.cursor(bare_seq)
        connection.session.note(log)
        connection.announce(begin_at(0, log) if since is None else judge(since, log), log)
        self._take_cuts(page)
        is_fitting = connection.sent_seq == asked_seq
        for _ in range(_STEPS):
            if connection.is_below_log:
                await self._history.rebuild(connection)
                is_fitting = False
            else:
                if not is_fitting:
                    page = await self._history.page(self._ref, connection.read_seq)
                is_fitting = False
                log = page.log
                if not self._take(page) or self._is_full(log):
                    break
            self._check_going_on()
        write_pending_cut(connection)
        self._check_going_on()
        return HistoryAnswer(tuple(self._collector.frames), connection.cursor(connection.sent_seq), log)

    def _take(self, page: Page) -> bool:
        """False: the page had nothing, and nothing is missing."""
        connection = self._connection
        if connection.line == page.log.line and page.log.head + page.log.held < connection.sent_seq:
            raise StoreUnavailable("the log went back while it was read", outcome_unknown=False)
        position = connection.read_seq
        connection.session.note(page.log)
        if connection.line != page.log.line or connection.read_seq < page.log.lost:
            write_pending_cut(connection)
        connection.settle_on(page.log)  # also where the log was trimmed beyond it since the page before
        self._take_cuts(page)
        if connection.is_below_log or connection.read_seq < position:
            return True  # what is due now is not in this page
        entries = [entry for entry in page.entries if entry.seq > connection.read_seq][: self._left]
        self._left -= len(entries)
        if entries or not page.entries:
            self._history.write(connection, dataclasses.replace(page, entries=tuple(entries)))
        return bool(entries)

    def _is_full(self, log: LogState) -> bool:
        is_over = self._left <= 0 or self._collector.size_bytes >= ANSWER_BYTES
        return is_over or (not self._connection.is_below_log and self._connection.read_seq >= log.head)

    def _take_cuts(self, page: Page) -> None:
        """Who looks back is shown what it had seen of a run that it interrupted."""
        for client, (run, seen) in page.cuts:
            if client == self._asked.client:
                self._connection.cut(
                    run, above_seq=0 if seen is None else seen.seq, text_until=0 if seen is None else seen.at
                )

    def _check_going_on(self) -> None:
        if self._connection.is_ending:
            raise RelayError(ErrorCode.INTERNAL, "a hook refused a message of this session")


__all__ = ["History"]
