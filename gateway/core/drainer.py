"""The orderly end: not ready, a slot for every client, gradual closes, no trace, all before the deadline (C7, K01-K05).

Never waits for a client beyond its deadline. Called by gateway.app on SIGTERM.
"""

import asyncio

import structlog

from gateway.core.hub import Hub
from gateway.core.members import Members
from gateway.domain.sessions.drain_plan import plan_drain
from gateway.domain.wire.close_codes import CloseCode
from gateway.ports import Clock
from gateway.settings import DrainSettings

log = structlog.get_logger()

REASON = "drain"
_LOOK_SECONDS = 0.05


class Drainer:
    """One per gateway. `run` once; `hurry` from a second signal."""

    def __init__(self, hub: Hub, members: Members, settings: DrainSettings, clock: Clock) -> None:
        self._hub = hub
        self._members = members
        self._settings = settings
        self._clock = clock
        self._hurried = asyncio.Event()
        self._deadline = 0.0
        self.is_draining = False

    def begin(self) -> None:
        """From here on nobody is let in, and readiness says so. Idempotent."""
        if not self.is_draining:
            self.is_draining = True
            self._deadline = self._clock() + self._settings.deadline_seconds
            log.info("drain_started", open=len(self._hub.connections))

    def hurry(self) -> None:
        """A second signal: no more waiting, sockets are closed now."""
        self._hurried.set()

    @property
    def seconds_left(self) -> float:
        return max(0.0, self._deadline - self._clock())

    async def run(self) -> None:
        """Returns when every client was told and closed, or the time for it is over."""
        self.begin()
        await self._members.announce()
        await self._pause(self._settings.settle_seconds)
        await self._close_all()
        await self._wait_for_ends()
        await self._members.withdraw()
        log.info("drain_ended", left=len(self._hub.connections))

    async def _close_all(self) -> None:
        connections = [connection for connection in self._hub.connections if connection.is_open]
        slots = plan_drain(
            len(connections),
            pace_seconds=self._settings.pace_ms / 1000,
            window_seconds=self._settings.window_seconds,
            time_left_seconds=self._time_to_close(),
            return_spread_seconds=self._settings.return_spread_seconds,
        )
        began = self._clock()
        for connection, slot in zip(connections, slots, strict=True):
            connection.send_control(
                {"kind": "reconnect_later", "after_ms": slot.return_after_ms, "reason": REASON, "prefer": None}
            )
        for connection, slot in zip(connections, slots, strict=True):
            await self._pause(began + slot.close_after_seconds - self._clock())
            connection.begin_close(CloseCode.RESTART, REASON)
        # Who was being let in when the drain began has no slot, and is closed at once.
        for connection in [late for late in self._hub.connections if late.is_open]:
            connection.send_control({"kind": "reconnect_later", "after_ms": 1, "reason": REASON, "prefer": None})
            connection.begin_close(CloseCode.RESTART, REASON)

    async def _wait_for_ends(self) -> None:
        """Links end by themselves within their close time-out; nobody tells when the last one did."""
        give_up = self._deadline - self._settings.margin_seconds / 2
        while self._hub.connections and self._clock() < give_up:  # noqa: ASYNC110  see above
            await asyncio.sleep(_LOOK_SECONDS)

    def _time_to_close(self) -> float:
        return self.seconds_left - self._settings.margin_seconds

    async def _pause(self, seconds: float) -> None:
        if seconds <= 0 or self._hurried.is_set():
            return
        try:
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        except TimeoutError:
            return


__all__ = ["Drainer"]
