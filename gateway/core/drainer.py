"""The orderly end: not ready, a slot for every client, gradual closes, no trace, all before the deadline (C7, K01-K05).

Never waits for a client or for Redis beyond its deadline. Called by gateway.app on SIGTERM.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.members import Members
from gateway.core.tasks import TaskOwner
from gateway.domain.sessions.drain_plan import DrainSlot, plan_drain
from gateway.domain.wire.close_codes import CloseCode
from gateway.ports import Clock
from gateway.settings import DrainSettings

log = structlog.get_logger()

REASON = "drain"
HURRIED_SECONDS = 1.0
"""After a second signal clients have so long to answer our close."""
LEAVE_SHARE = 1 / 3
"""Of the margin, to release the last routes and to withdraw; the rest is for the process itself to end."""
_LOOK_SECONDS = 0.05

EndIngests = Callable[[float], Coroutine[Any, Any, None]]
"""Ends open streams of producers within so many seconds."""


class Drainer:
    """One per gateway. `run` once; `hurry` from a second signal."""

    def __init__(
        self,
        hub: Hub,
        members: Members,
        settings: DrainSettings,
        owner: TaskOwner,
        clock: Clock,
        rng: random.Random,
        *,
        end_ingests: EndIngests | None = None,
    ) -> None:
        """`end_ingests` is called once proxies had time to look elsewhere."""
        self._hub = hub
        self._members = members
        self._settings = settings
        self._owner = owner
        self._clock = clock
        self._rng = rng
        self._end_ingests = end_ingests
        self._hurried = asyncio.Event()
        self._began_at = 0.0
        self.is_draining = False

    def begin(self) -> None:
        """From here on nobody is let in, and readiness says so. Idempotent."""
        if not self.is_draining:
            self.is_draining = True
            self._began_at = self._clock()
            log.info("drain_started", open=len(self._hub.connections))

    def hurry(self) -> None:
        """A second signal: no more waiting, sockets are closed now; when their clients return stays spread."""
        if not self._hurried.is_set():
            log.info("drain_hurried", open=len(self._hub.connections))
            self._hurried.set()

    @property
    def seconds_left(self) -> float:
        """Until the process must have ended; only while draining."""
        return max(0.0, self._began_at + self._settings.deadline_seconds - self._clock())

    async def run(self) -> None:
        """Returns when every client was told and has ended, or its time is over; a part of the margin is left."""
        self.begin()
        self._owner.start("announce", self._members.announce())
        await self._pause_until(self._began_at + self._settings.settle_seconds)
        ending = self._start_ending_ingests()
        await self._close_all()
        await self._wait_for_ends()
        if ending is not None:
            await asyncio.wait([ending])
        await self._leave_no_trace()
        log.info("drain_ended", left=len(self._hub.connections))

    def _start_ending_ingests(self) -> "asyncio.Task[None] | None":
        if self._end_ingests is None:
            return None
        left = self.seconds_left - self._settings.margin_seconds
        return self._owner.start("end-ingests", self._end_ingests(max(0.0, left)))

    async def _close_all(self) -> None:
        connections = [connection for connection in self._hub.connections if connection.is_open]
        slots = self._plan(len(connections))
        told_at = self._clock()
        for connection, slot in zip(connections, slots, strict=True):
            _tell(connection, slot)
        for connection, slot in zip(connections, slots, strict=True):
            await self._pause_until(told_at + slot.close_after_seconds)
            connection.begin_close(CloseCode.RESTART, REASON)

    def _plan(self, count: int) -> list[DrainSlot]:
        settings = self._settings
        return plan_drain(
            count,
            pace_seconds=settings.pace_ms / 1000,
            window_seconds=settings.window_seconds,
            time_left_seconds=self.seconds_left - settings.margin_seconds,
            return_spread_seconds=settings.return_spread_seconds,
        )

    async def _wait_for_ends(self) -> None:
        """Links end by themselves within their close time-out; nobody tells when the last one did."""
        give_up = self._began_at + self._settings.deadline_seconds - self._settings.margin_seconds
        hurried_give_up = self._clock() + HURRIED_SECONDS
        while self._hub.connections:
            self._close_late_ones()
            until = min(give_up, hurried_give_up) if self._hurried.is_set() else give_up
            if self._clock() >= until:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    def _close_late_ones(self) -> None:
        """Who was being let in when the drain began has no slot: it is closed at once, and returns with the others."""
        for connection in [late for late in self._hub.connections if late.is_open]:
            after_ms = 1 + int(1000 * self._rng.uniform(0, self._settings.return_spread_seconds))
            _tell(connection, DrainSlot(0.0, after_ms))
            connection.begin_close(CloseCode.RESTART, REASON)

    async def _leave_no_trace(self) -> None:
        """Routes of the last connections, and our own record; what Redis does not answer for ends with its lease."""
        seconds = max(0.0, min(self.seconds_left, self._settings.margin_seconds * LEAVE_SHARE))
        self._owner.clean_up("withdraw", self._members.withdraw())
        if not await self._owner.cleaned_up(seconds):
            log.warning("traces_left_to_leases")

    async def _pause_until(self, when: float) -> None:
        seconds = when - self._clock()
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        except TimeoutError:
            return  # it is time


def _tell(connection: Connection, slot: DrainSlot) -> None:
    connection.send_control(
        {"kind": "reconnect_later", "after_ms": slot.return_after_ms, "reason": REASON, "prefer": None}
    )


__all__ = ["HURRIED_SECONDS", "Drainer"]
