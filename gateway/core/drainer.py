"""The orderly end: not ready, a slot for every client, gradual closes, no trace, all before the deadline (C7, K01-K05).

Never waits for a client or for Redis beyond its deadline. Called by gateway.app on SIGTERM, and by the admin port,
which may take a drain back.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import structlog

from gateway.core.departures import Departures
from gateway.core.hub import Hub
from gateway.core.members import Members
from gateway.core.standings import Standings
from gateway.core.tasks import TaskOwner
from gateway.domain.sessions.drain_plan import DrainTimes
from gateway.ports import Clock
from gateway.settings import DrainSettings

log = structlog.get_logger()

HURRIED_SECONDS: Final = 1.0
"""After a second signal clients have so long to answer our close."""
LEAVE_SHARE: Final = 1 / 3
"""Of the margin, to release the last routes and to withdraw; the rest is for the process itself to end."""
RUNS_SECONDS: Final = 0.5
"""How often it is looked whose run has ended."""
LATE_SECONDS: Final = 1.0
"""How often it is looked for connections that were let in before the drain and came to be after it."""
_LOOK_SECONDS: Final = 0.05

RETIRE_SHARE: Final = 1 / 2
"""Of the time that is left, to send producers away one after the other; in the rest they end."""

EndIngests = Callable[[float, float], Coroutine[Any, Any, None]]
"""Ends open streams of producers within so many seconds, and begins with each within so many."""


class Drainer:
    """One per gateway. `run` once, at the end; `run_and_stay` and `undo` any number of times before it."""

    def __init__(
        self,
        hub: Hub,
        members: Members,
        settings: DrainSettings,
        owner: TaskOwner,
        clock: Clock,
        *,
        standings: Standings,
        end_ingests: EndIngests | None = None,
        take_ingests: Callable[[], None] = lambda: None,
    ) -> None:
        """`end_ingests` is called once proxies had time to look elsewhere; `take_ingests` undoes it."""
        self._hub = hub
        self._members = members
        self._settings = settings
        self._owner = owner
        self._clock = clock
        self._standings = standings
        self._end_ingests = end_ingests
        self._take_ingests = take_ingests
        self._hurried = asyncio.Event()
        """Hurried: whoever waits looks again."""
        self._is_hurried = False
        self._is_ending_ingests = False
        self._began_at = 0.0
        self._staying: asyncio.Task[None] | None = None
        self.is_draining = False
        self.is_final = False
        """The process ends after it."""

    def begin(self) -> None:
        """From here on nobody is let in, and readiness says so. Idempotent."""
        if not self.is_draining:
            self.is_draining = True
            self._began_at = self._clock()
            log.info("drain_started", open=len(self._hub.connections))

    def hurry(self) -> None:
        """A second signal: no more waiting, sockets are closed now; when their clients return stays spread."""
        if not self._is_hurried:
            log.info("drain_hurried", open=len(self._hub.connections))
            self._is_hurried = True
            self._hurried.set()
            if self._is_ending_ingests:
                self._start_ending_ingests()

    @property
    def seconds_left(self) -> float:
        """Until the process must have ended; only while draining."""
        return max(0.0, self._began_at + self._settings.deadline_seconds - self._clock())

    # ---- by an operator, who may think again -----------------------------------------------------------------------

    def run_and_stay(self) -> None:
        """Drain and go on living, ready for nobody. Idempotent."""
        if not self.is_draining:
            self.begin()
            self._staying = self._owner.start("drain", self._stay())

    def undo(self) -> bool:
        """Take clients again. Those that were told to leave still may. False: the process is ending."""
        if self.is_final:
            return False
        if self.is_draining:
            self.is_draining = False
            if self._staying is not None:
                self._staying.cancel()  # or the next drain, if it comes at once, would find it at work and unsettled
            self._take_ingests()
            self._is_ending_ingests = False
            self._standings.forget()
            self._owner.start("announce", self._members.announce())
            log.info("drain_undone", open=len(self._hub.connections))
        return True

    # ---- the end ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Returns when every client was told and has ended, or its time is over; a part of the margin is left."""
        self.is_final = True
        if self._staying is not None and not self._staying.done():
            self._staying.cancel()  # its clients get another slot, and there is a deadline now
        if self._staying is not None:
            self._began_at = self._clock()
        self.begin()
        await self._empty()
        await self._leave_no_trace()
        log.info("drain_ended", left=len(self._hub.connections))

    async def _stay(self) -> None:
        """Until it is taken back, or the process ends: a claim that Redis answers late would stay for good."""
        departures = await self._empty()
        while True:
            self._close_late_ones(departures)
            await asyncio.sleep(LATE_SECONDS)

    async def _empty(self) -> Departures:
        self._owner.start("announce", self._members.announce())
        await self._pause_until(self._began_at + self._settings.settle_seconds)
        ending = self._start_ending_ingests()
        departures = await self._close_all()
        await self._wait_for_ends(departures)
        if ending is not None:
            await asyncio.wait([ending])
        return departures

    def _start_ending_ingests(self) -> "asyncio.Task[None] | None":
        if self._end_ingests is None:
            return None
        left = max(0.0, self.seconds_left - self._settings.margin_seconds)
        self._is_ending_ingests = True
        return self._owner.start(
            "end-ingests", self._end_ingests(left, 0.0 if self._is_hurried else left * RETIRE_SHARE)
        )

    async def _close_all(self) -> Departures:
        connections = [connection for connection in self._hub.connections if connection.is_open]
        if not self._is_hurried:
            await self._standings.look(connection.session for connection in connections)
        departures = Departures(connections, self._standings, self._times(), self._clock())
        give_up = self._give_up_at
        look_at = self._clock() + RUNS_SECONDS
        looking: asyncio.Task[None] | None = None
        while True:
            now = self._clock()
            if self._is_hurried or now >= give_up:
                departures.hurry(now)
                break
            if looking is not None and looking.done():
                departures.release_ended(now)
                looking, look_at = None, now + RUNS_SECONDS
            due = departures.act(now)
            if due is None:
                break
            if departures.are_in_run and now >= look_at and looking is None:
                # Beside the closes: a Redis that answers late must not hold them up.
                looking = self._owner.start("standings", self._standings.look(departures.sessions_in_run))
            until = min(due, give_up)
            await self._pause_until(min(until, max(look_at, now + _LOOK_SECONDS)) if departures.are_in_run else until)
        if looking is not None:
            looking.cancel()
        return departures

    def _times(self) -> DrainTimes:
        settings = self._settings
        return DrainTimes(
            pace_seconds=settings.pace_ms / 1000,
            window_seconds=settings.window_seconds,
            time_left_seconds=self.seconds_left - settings.margin_seconds,
            overlap_seconds=settings.overlap_seconds,
            returns_per_second=settings.returns_per_second,
        )

    @property
    def _give_up_at(self) -> float:
        """From then on there is only the margin."""
        return self._began_at + self._settings.deadline_seconds - self._settings.margin_seconds

    async def _wait_for_ends(self, departures: Departures) -> None:
        """Links end by themselves within their close time-out; nobody tells when the last one did."""
        give_up = self._give_up_at
        hurried_give_up = self._clock() + HURRIED_SECONDS
        while self._hub.connections:
            self._close_late_ones(departures)
            until = min(give_up, hurried_give_up) if self._is_hurried else give_up
            if self._clock() >= until:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _close_late_ones(self, departures: Departures) -> None:
        """Who was being let in when the drain began has no slot: it is closed at once, and returns with the others."""
        for connection in [late for late in self._hub.connections if late.is_open]:
            departures.send_away(connection, self._clock())

    async def _leave_no_trace(self) -> None:
        """Routes of the last connections, and our own record; what Redis does not answer for ends with its lease."""
        seconds = max(0.0, min(self.seconds_left, self._settings.margin_seconds * LEAVE_SHARE))
        self._owner.clean_up("withdraw", self._members.withdraw())
        if not await self._owner.cleaned_up(seconds):
            log.warning("traces_left_to_leases")

    async def _pause_until(self, when: float) -> None:
        """Or until it is hurried."""
        seconds = when - self._clock()
        if seconds <= 0 or self._is_hurried:
            await asyncio.sleep(0)  # others are served in between
            return
        self._hurried.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        except TimeoutError:
            return  # it is time


__all__ = ["HURRIED_SECONDS", "LATE_SECONDS", "RUNS_SECONDS", "Drainer"]
