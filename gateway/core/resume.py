"""Brings a connection from a position to live: the claim's first page, pages of the log, the exact join (G3, G7).

One task per connection at most, and only while it is behind. Recovering and lagging are the same work. Called by door
(begin), by connections that fell behind, by renewals (reclaim).
"""

import random
from typing import assert_never

import structlog

from gateway.core.budget import ByteBudget
from gateway.core.connection import CATCHING_UP, Connection
from gateway.core.pacing import PAGE_BYTES, first_of
from gateway.core.pages import Pages, write_pending_cut
from gateway.core.pauses import Pauses
from gateway.core.placement import place, take_missed_cuts, take_over_cuts, welcome_payload
from gateway.core.snapshots import NoSession, Snapshots
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import judge, judge_unknown
from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId
from gateway.ports import (
    Claimed,
    ClaimOutcome,
    ClaimRefusal,
    ClaimRefused,
    ClaimRequest,
    LogStore,
    Origin,
    Page,
    RunStore,
    StoreUnavailable,
)
from gateway.settings import LimitSettings

log = structlog.get_logger()


class Resume:
    """One per gateway. `budget` bounds what all pages in flight hold."""

    def __init__(
        self,
        store: LogStore,
        limits: LimitSettings,
        measures: Measures,
        owner: TaskOwner,
        *,
        gateway: GatewayId,
        rng: random.Random,
        runs: RunStore,
    ) -> None:
        self._snapshots = Snapshots(runs, limits.merged_frame_bytes)
        self.budget = ByteBudget(limits.recovery_memory_bytes)
        self.page_bytes = limits.replay_page_bytes
        self._store = store
        self._pages = Pages(limits.merged_frame_bytes, measures)
        self._limits = limits
        self._measures = measures
        self._owner = owner
        self._gateway = gateway
        self._rng = rng
        self._reclaiming: set[Connection] = set()

    # ---- at connect ------------------------------------------------------------------------------------------

    def begin(self, connection: Connection, claimed: Claimed, bare_seq: int | None) -> str:
        """Welcome, gaps and the claim's page in one go, then live; what is more is read by a task of its own.

        Returns `welcome.resumed`.

        `connection.generation` and its link are set. `bare_seq`: the `last_received_seq` that the claim was made with.
        """
        state = claimed.log
        connection.first_generation, connection.claimed_line = claimed.generation, state.line
        verdict, resumed = place(claimed, bare_seq)
        if claimed.origin is Origin.LIVE and claimed.kept_from is not None:
            connection.kept_until = state.head
        take_over_cuts(connection, claimed)
        connection.session.note(state)
        self._measures.replays[resumed] += 1
        connection.send_control(welcome_payload(connection, claimed, verdict.start, resumed, self._gateway))
        for frame in claimed.asks:
            connection.tell_ask(frame)
        connection.announce(verdict, state)
        page = claimed.page
        if page is not None and connection.pacing is not None:
            page = first_of(page, PAGE_BYTES)
        if connection.is_to_be_rebuilt:
            connection.stop_holding()
        elif page is None:
            if connection.sent_seq >= state.head and self._join(connection):
                return resumed
        elif self._take(connection, page):
            return resumed
        self.catch_up(connection)
        return resumed

    # ---- behind ----------------------------------------------------------------------------------------------

    def catch_up(self, connection: Connection) -> None:
        """Read the log for it until it is live, in a task."""
        self._owner.start("catch-up", self._catch_up(connection))

    async def _catch_up(self, connection: Connection) -> None:
        pauses = Pauses(self._rng)
        while connection.state in CATCHING_UP:
            room = await connection.room()
            if not room:
                return
            try:
                async with self.budget.share(self.page_bytes):
                    step = self._rebuild if connection.is_to_be_rebuilt else self._read_on
                    if connection.state not in CATCHING_UP or await step(connection, room):
                        return  # live, or it ended, perhaps while it waited
            except StoreUnavailable:
                connection.stop_holding()
                await pauses.wait()
            else:
                pauses = Pauses(self._rng)

    async def _read_on(self, connection: Connection, room: int) -> bool:
        """One page. True when the connection is live, or ended."""
        connection.start_holding()
        session, line_before = connection.session, connection.session.line
        after_seq = connection.read_seq
        page = await self._store.page(session.ref, after_seq, room)
        if not connection.may_read_on:
            connection.stop_holding()
            return connection.state not in CATCHING_UP
        if page is None or not self._settle_on(connection, page.log, line_before):
            return await self._claim_again(connection) is None
        if connection.is_to_be_rebuilt or connection.read_seq < after_seq:
            return False  # what is due now is not in this page
        take_missed_cuts(connection, page)
        return self._take(connection, page)

    async def _rebuild(self, connection: Connection, room: int) -> bool:
        """One step of what comes before the log is read on. True when the connection ended."""
        connection.stop_holding()
        line_before = connection.session.line
        try:
            plan = await self._snapshots.step(connection, room)
        except NoSession:
            return await self._claim_again(connection) is None
        if plan is None:
            return connection.state not in CATCHING_UP
        if not self._settle_on(connection, plan.log, line_before):
            return await self._claim_again(connection) is None
        if connection.kept_until is not None:
            self._snapshots.begin_live(connection, plan)
        elif connection.is_below_log:
            self._snapshots.begin(connection, plan)
        return False

    def _settle_on(self, connection: Connection, state: LogState, line_before: Line) -> bool:
        """Before anything of this log is written. False: its writes went back, and only a claim finds out how far."""
        session = connection.session
        if session.line not in (line_before, state.line):
            # A claim brought newer news: judged by this answer, everything would be a gap.
            raise StoreUnavailable("the answer is older than the claim", outcome_unknown=False)
        if _went_back(connection.line, connection.sent_seq, state):
            return False
        session.note(state)
        if connection.line != state.line or connection.read_seq < state.lost:
            write_pending_cut(connection)
        connection.settle_on(state)
        return True

    def _take(self, connection: Connection, page: Page) -> bool:
        """Write a page that began at or below the connection's position; join when it reached the head."""
        self._pages.write(connection, page)
        if connection.sent_seq < page.log.head:
            connection.stop_holding()
            return False
        return self._join(connection)

    def _join(self, connection: Connection) -> bool:
        is_first = not connection.was_live
        if not connection.join():
            return connection.is_ending
        connection.shared.on_live(connection)
        if is_first and connection.replaces is not None:
            self._owner.start("settle", self._settle(connection))
        return True

    async def _settle(self, connection: Connection) -> None:
        """The connection that it replaces may go now. The route ends `previous` by itself when nobody can say so."""
        pauses = Pauses(self._rng)
        for _ in range(5):
            try:
                is_owner = await self._store.settle(
                    connection.session.ref, connection.client, connection.id, connection.generation
                )
            except StoreUnavailable:
                await pauses.wait()
            else:
                if is_owner:
                    return
                if connection.claimed_line == connection.session.line:
                    connection.superseded()
                else:
                    await self.reclaim(connection)  # a fail-over may have forgotten its claim
                return
        log.warning("settle_given_up")

    # ---- the route was lost ----------------------------------------------------------------------------------

    async def reclaim(self, connection: Connection) -> None:
        """Own the route again and stand on the log that it names. A connection that is behind reads on by itself."""
        if not connection.is_open or not connection.generation or connection in self._reclaiming:
            return  # before its welcome it has no position; the next renewal asks for it
        self._reclaiming.add(connection)
        try:
            async with self.budget.share(self.page_bytes):
                claimed = None if connection.is_ending else await self._claim_again(connection)
        except StoreUnavailable:
            return
        finally:
            self._reclaiming.discard(connection)
        if claimed is None or not connection.is_live:
            return
        if connection.is_below_log:
            connection.fall_behind()
            return
        if claimed.page is not None and connection.line == claimed.log.line:
            self._pages.write_entries(connection, claimed.page)
        session = connection.session
        is_behind = connection.line != session.line or connection.sent_seq < session.head_seen
        if is_behind and connection.state is State.LIVE:
            connection.fall_behind()

    async def _claim_again(self, connection: Connection) -> Claimed | None:
        """It stands on the log that the claim named, unless None: it ends, by the refusal or by itself."""
        line, sent_seq, line_before = connection.line, connection.sent_seq, connection.session.line
        outcome = await self._store.claim(
            ClaimRequest(
                session=connection.session.ref,
                gateway=self._gateway,
                connection=connection.id,
                client=connection.client,
                may_create=connection.principal.may_create(connection.session.ref.session),
                user=connection.principal.user,
                cursor=connection.cursor(connection.sent_seq),
                reclaims=connection.first_generation,
                capabilities=connection.capabilities,
            )
        )
        if isinstance(outcome, Claimed):
            connection.generation, connection.claimed_line = outcome.generation, outcome.log.line
        if connection.is_ending:
            await self._give_back(connection, outcome)
            return None
        match outcome:
            case Claimed():
                connection.is_previous = False
                take_over_cuts(connection, outcome)
                if connection.session.line not in (line_before, outcome.log.line):
                    return outcome  # a page of a newer log was faster; it goes on from there
                connection.session.note(outcome.log)
                if outcome.origin is Origin.CREATED:
                    connection.announce(judge_unknown(sent_seq, outcome.log), outcome.log)
                elif _went_back(line, sent_seq, outcome.log):
                    connection.announce(judge(connection.cursor(sent_seq), outcome.log), outcome.log)
                else:
                    connection.settle_on(outcome.log)
                return outcome
            case ClaimRefused(ClaimRefusal.SUPERSEDED):
                connection.superseded()
            case ClaimRefused(ClaimRefusal.NOT_FOUND):
                connection.is_fenced = True
                connection.begin_close(CloseCode.NOT_FOUND, "session is gone")
            case ClaimRefused():
                connection.begin_close(CloseCode.TRY_LATER, "route lost")
            case _:
                assert_never(outcome)
        return None

    async def _give_back(self, connection: Connection, outcome: ClaimOutcome) -> None:
        """It ended while it claimed again. Its release names the new generation, unless that was sent before."""
        if connection.state is State.CLOSED and isinstance(outcome, Claimed) and not connection.is_fenced:
            route = connection.as_route()
            await self._store.release(connection.session.ref, self._gateway, route, was_live=connection.was_live)


def _went_back(line: bytes, sent_seq: int, state: LogState) -> bool:
    """On the same line the head is below what was delivered: the server lost writes and no fork was opened yet.

    Only a claim opens it, and only then the gap is exact.
    """
    return line == state.line and state.head + state.held < sent_seq


__all__ = ["Resume"]
