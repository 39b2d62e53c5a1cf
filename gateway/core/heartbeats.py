"""The heartbeat wheel: looks at every connection once a second, a quarter of them at a time.

Owns pings, missed pongs, answers after silence, stopped readers and the ends of tokens (design.md 5.6, U03). No task
and no timer per connection. Measures the loop's lag on the way.
"""

import asyncio

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Due
from gateway.domain.wire.close_codes import CloseCode
from gateway.ports import Clock
from gateway.settings import AuthSettings, LivenessSettings

log = structlog.get_logger()

TICK_SECONDS = 0.25
TICKS_A_ROUND = 4
"""A round is a second: tokens end within it (U03)."""
ROUNDS_A_PROGRESS_CHECK = 4


class Heartbeats:
    """`run` for ever."""

    def __init__(
        self,
        hub: Hub,
        settings: LivenessSettings,
        auth: AuthSettings,
        measures: Measures,
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self._hub = hub
        self._settings = settings
        self._auth = auth
        self._measures = measures
        self._clock = clock
        self._wall_clock = wall_clock
        self._round: list[Connection] = []
        self._tick = 0
        self.lag_seconds = 0.0
        """How late the last tick was."""

    async def run(self) -> None:
        due = self._clock() + TICK_SECONDS
        while True:
            await asyncio.sleep(max(0.0, due - self._clock()))
            now = self._clock()
            self.lag_seconds = max(0.0, now - due)
            self._measures.loop_lag_seconds.observe(self.lag_seconds)
            due = max(due + TICK_SECONDS, now)
            self.tick(now)

    def tick(self, now: float) -> None:
        """A quarter of the round's connections."""
        position = self._tick % TICKS_A_ROUND
        if position == 0:
            self._round = list(self._hub.connections)
        checks_progress = (self._tick // TICKS_A_ROUND) % ROUNDS_A_PROGRESS_CHECK == 0
        wall = self._wall_clock()
        for connection in self._round[position::TICKS_A_ROUND]:
            if connection.is_open:
                self._look(connection, now, wall, checks_progress=checks_progress)
        self._tick += 1

    def _look(self, connection: Connection, now: float, wall: float, *, checks_progress: bool) -> None:
        if connection.expires_at is not None and self._has_expired(connection, connection.expires_at, wall):
            connection.begin_close(CloseCode.UNAUTHENTICATED, "expired")
            return
        liveness, link, settings = connection.liveness, connection.link, self._settings
        if link is None:
            return
        if liveness.is_about_to_miss(now):
            idle = link.idle_seconds()
            if idle is not None and now - idle > liveness.heard_at:
                liveness.heard(now - idle)
        missed = liveness.missed
        due = liveness.look(
            now,
            connection.written_at,
            silence_seconds=settings.silence_seconds,
            answer_seconds=settings.answer_within_seconds,
            max_missed=settings.missed_pongs,
        )
        self._measures.missed_pongs += max(0, liveness.missed - missed)
        if due is Due.DEAD:
            connection.begin_close(CloseCode.UNRESPONSIVE, "heartbeat")
        elif checks_progress and connection.has_stopped_reading(now):
            connection.begin_close(CloseCode.UNRESPONSIVE, "stopped_reading")
        elif due is Due.PING:
            link.ping(liveness.next_nonce(now))

    def _has_expired(self, connection: Connection, expires_at: float, wall: float) -> bool:
        """Tells the client once, a while before."""
        if wall >= expires_at + self._auth.leeway_seconds:
            return True
        left = expires_at - wall
        if not connection.is_expiry_told and left <= self._auth.expiring_notice_seconds:
            connection.is_expiry_told = True
            connection.send_control({"kind": "expiring", "after_ms": max(0, int(left * 1000))})
        return False


__all__ = ["Heartbeats"]
