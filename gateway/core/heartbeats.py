"""The heartbeat wheel: passes over every connection once a round, in slots, and looks at those where something is due.

Owns pings, missed pongs, answers after silence, stopped readers and the ends of tokens (design.md 5.6, U03). No task
and no timer per connection. Measures the loop's lag on the way.
"""

import asyncio
from collections.abc import Callable

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.visit import is_further_poll
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Due
from gateway.domain.sessions.quality import Level
from gateway.domain.wire.close_codes import CloseCode
from gateway.ports import Clock
from gateway.settings import AuthSettings, LivenessSettings

log = structlog.get_logger()

TICK_SECONDS = 1 / 16
"""Short, as one tick holds the loop for its whole slot: at 0.2 s, 500 progress checks made text wait for 12 ms."""
STALL_SECONDS = 0.15
"""A tick so late: round trips of that time were longer by our own fault."""
SLOTS = 13
"""A round is 0.81 s: what ends at a time ends within a second of it (U03)."""
ROUNDS_A_PROGRESS_CHECK = 4
"""Each slot has its turn in another round than its neighbours, so that a round is never dear as a whole."""


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
        on_look: Callable[[Connection, float], None] = lambda _, __: None,
    ) -> None:
        """`on_look`: also looks at a connection, when it was not found dead (core/qualities.py)."""
        self._hub = hub
        self._settings = settings
        self._auth = auth
        self._measures = measures
        self._clock = clock
        self._wall_clock = wall_clock
        self._on_look = on_look
        self._slots: tuple[list[Connection], ...] = ()
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
            if self.lag_seconds >= STALL_SECONDS:
                self._hub.shared.stalled_at, self._hub.shared.stalled_seconds = now, self.lag_seconds
            missed = int(self.lag_seconds / TICK_SECONDS)
            if missed >= SLOTS:
                missed = 0  # it was frozen: what came meanwhile is read first, and looks count from `now`
                due = now
            due += (1 + missed) * TICK_SECONDS
            for _ in range(1 + missed):  # on a loop that is busy a round takes no longer
                self.tick(now)

    def tick(self, now: float) -> None:
        """The connections of one slot; each stays in its own, so that it is passed once a round."""
        slot = self._tick % SLOTS
        if slot == 0:
            self._slots = tuple([] for _ in range(SLOTS))
            for connection in self._hub.connections:
                self._slots[hash(connection.id) % SLOTS].append(connection)
        checks_progress = (self._tick // SLOTS + slot) % ROUNDS_A_PROGRESS_CHECK == 0
        wall = self._wall_clock()
        silence_seconds = self._settings.silence_seconds
        noticed_from = wall + self._auth.expiring_notice_seconds
        for connection in self._slots[slot]:
            # In place and without calls: for most connections nothing is due, and there may be many.
            liveness = connection.liveness
            if (
                checks_progress
                or connection.quality.level is not Level.GOOD
                or now >= liveness.ping_at
                or connection.written_at - liveness.heard_at >= silence_seconds  # also while the answer is due
                or (connection.expires_at is not None and noticed_from >= connection.expires_at)
            ) and connection.is_open:
                self._look(connection, now, wall, checks_progress=checks_progress)
        self._tick += 1

    def _look(self, connection: Connection, now: float, wall: float, *, checks_progress: bool) -> None:
        if connection.expires_at is not None and self._has_expired(connection, connection.expires_at, now, wall):
            connection.begin_close(CloseCode.UNAUTHENTICATED, "expired")
            return
        liveness, link, settings = connection.liveness, connection.link, self._settings
        if link is None:
            return
        if liveness.is_about_to_miss(now):
            idle_seconds = link.idle_seconds()
            if idle_seconds is not None:
                liveness.showed_life(now - idle_seconds)
            if link.unsent_bytes():
                # The ping waits behind what a slow reader has not taken yet: as long as it takes, it is there (C9).
                liveness.showed_life(connection.progressed_at)
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
        if connection.is_open:
            self._on_look(connection, now)

    def _has_expired(self, connection: Connection, expires_at: float, now: float, wall: float) -> bool:
        """Tells the client once, a while before."""
        if wall >= expires_at + self._auth.leeway_seconds:
            return True
        left, notice_seconds = expires_at - wall, self._auth.expiring_notice_seconds
        if not connection.is_expiry_told and left <= notice_seconds:
            connection.is_expiry_told = True
            left_at_first = left + now - connection.opened_at
            if not (is_further_poll(connection) and left_at_first <= notice_seconds):
                # Else a poll before it was told: each would end with the notice, and none would wait.
                connection.send_control({"kind": "expiring", "after_ms": max(0, int(left * 1000))})
        return False


__all__ = ["Heartbeats"]
