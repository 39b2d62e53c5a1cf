"""Judges every connection's quality, tells its client, has its route say so, and eases what a poor one is given (A11).

Called by the heartbeat wheel (looks), by visits (round trips) and by resume (who has caught up). `run` writes routes
and watches whether the round trips of all get longer (B7).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from gateway.core.coalescer import Coalescer
from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.pacing import takes_extras
from gateway.domain.measures import Measures
from gateway.domain.sessions.quality import Level, Thresholds
from gateway.domain.sessions.rtt_trend import RttTrend
from gateway.domain.sessions.states import State
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import SessionRef
from gateway.ports import Clock
from gateway.settings import QualitySettings

log = structlog.get_logger()

MEASURE_SECONDS: Final = 1.0
"""Between two pings to a connection that is not good, or may not be: a recovery is seen within seconds."""
MEASURES_A_SECOND: Final = 500
"""When more are not good each is measured less often: a gateway that is slow itself is not slowed by asking all."""
ACK_DELAY_SECONDS: Final = 0.25
"""A client may keep an acknowledgement for so long: that is no part of the way."""
FLOWS_SECONDS: Final = 5.0
"""Written to since: while the round trips of all get longer, such connections are measured out of turn."""
AFTER_STALL_SECONDS: Final = 0.3
"""What came while our loop stood still is read about when it is found to have stood still, before or after."""
WRITE_SECONDS: Final = 1.0
SESSIONS_A_WRITE: Final = 100
"""Whose routes are written sooner than by the next renewal. All clients of a bad network change at once, and Redis
shall not feel it: the others wait for the next second, or for their renewal."""

Renew = Callable[[Sequence[LocalSession]], Awaitable[None]]


def thresholds_of(settings: QualitySettings) -> Thresholds:
    return Thresholds(settings.fair_rtt_ms / 1000, settings.poor_rtt_ms / 1000)


def note_round_trip(connection: Connection, seconds: float, now: float) -> None:
    """A ping was answered. In the gateway's own figures each connection counts once a heartbeat, however often it is
    measured: otherwise the poor would outvote all others."""
    quality = connection.quality
    quality.sample = seconds, now
    if now - quality.counted_at >= connection.heartbeat_seconds / 2:
        quality.counted_at = now
        connection.shared.measures.rtt_seconds.observe(seconds)


class Qualities:
    """One per gateway. `run` for ever."""

    def __init__(
        self, coalescer: Coalescer, settings: QualitySettings, measures: Measures, renew: Renew, clock: Clock
    ) -> None:
        self.trend = RttTrend(measures.rtt_seconds.bounds)
        self.may_coalesce: Callable[[SessionRef], bool] = lambda _: settings.degrade == "coalesce"
        """Whether the text of a session may be merged; composition replaces it by the route table's word."""
        self._coalescer = coalescer
        self._measures = measures
        self._renew = renew
        self._clock = clock
        self._changed: dict[LocalSession, None] = {}
        self._measure_seconds = MEASURE_SECONDS
        self._wanted = 0
        """Connections that wanted to be measured, since the last adjustment; each is looked at about once a second."""

    def look(self, connection: Connection, now: float) -> None:
        """From the heartbeat wheel: about once a second while it is not good, every few seconds otherwise."""
        link, quality = connection.link, connection.quality
        if link is None or connection.channel is Channel.POLL:
            return
        kernel_seconds = link.rtt_seconds()
        silent_seconds = 0.0
        if connection.channel is Channel.WEBSOCKET:
            silent_seconds = self._network_seconds(connection, now)
        elif kernel_seconds is not None:
            quality.on_rtt(kernel_seconds)
        if quality.look(now, _backlog(connection), silent_seconds):
            self._measures.quality_changes[quality.level] += 1
            self._changed[connection.session] = None
            self.ease(connection)
        elif quality.level is Level.POOR:
            self.ease(connection)  # what its session may be given may have changed
        if quality.told is not quality.level and takes_extras(connection):
            quality.told = quality.level
            connection.send_control(_told(connection))
        self._measure(connection, now, kernel_seconds or 0.0)

    def _network_seconds(self, connection: Connection, now: float) -> float:
        """Take its newest round trip into account. Returns for how long nothing has come since a ping. Both less what
        our own loop stood still meanwhile."""
        quality, shared = connection.quality, connection.shared
        sample, quality.sample = quality.sample, None
        if sample is not None:
            seconds, came_at = sample
            was_stalled = came_at - seconds <= shared.stalled_at <= came_at + AFTER_STALL_SECONDS
            quality.on_rtt(max(0.0, seconds - shared.stalled_seconds) if was_stalled else seconds)
        silent_seconds = connection.liveness.silent_seconds(now)
        was_stalled = shared.stalled_at >= now - silent_seconds
        return max(0.0, silent_seconds - shared.stalled_seconds) if was_stalled else silent_seconds

    def ease(self, connection: Connection) -> None:
        """Merge its text, or no longer. Also for one that has just caught up."""
        if connection.quality.level is Level.POOR and self.may_coalesce(connection.session.ref):
            self._coalescer.start(connection)
        else:
            self._coalescer.stop(connection)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            self.watch_trend()
            self.pace_measures()
            await self.write_routes()

    def pace_measures(self) -> None:
        """Once a second."""
        self._measure_seconds = max(MEASURE_SECONDS, self._wanted * WRITE_SECONDS / MEASURES_A_SECOND)
        self._wanted = 0

    def watch_trend(self) -> None:
        """Early warning: the P99 of round trips rises."""
        if self.trend.note(self._clock(), self._measures.rtt_seconds.counts):
            log.warning("rtt_rising" if self.trend.is_rising else "rtt_calm", ratio=round(self.trend.ratio, 2))

    async def write_routes(self) -> None:
        """What changed, in the routes. Redis away: the next renewal says it."""
        some = list(self._changed)[:SESSIONS_A_WRITE]
        if some:
            for session in some:
                del self._changed[session]
            await self._renew(some)

    def _measure(self, connection: Connection, now: float, kernel_seconds: float) -> None:
        """Ping it out of turn when it is not good, or something says that it may not be."""
        quality, liveness = connection.quality, connection.liveness
        hint = max(quality.hint_seconds - ACK_DELAY_SECONDS, kernel_seconds)
        is_wanted = (
            quality.level is not Level.GOOD
            or hint > quality.thresholds.fair_rtt_seconds
            or (self.trend.is_rising and now - connection.written_at < FLOWS_SECONDS)
        )
        if not is_wanted or connection.link is None:
            return
        self._wanted += 1
        if now - quality.measured_at < self._measure_seconds:
            return
        if connection.channel is Channel.WEBSOCKET and liveness.waits_for_pong:
            return  # only the newest ping's answer is a round trip
        quality.measured_at, quality.hint_seconds = now, 0.0
        connection.link.ping(liveness.next_nonce(now))


def _backlog(connection: Connection) -> float:
    """Share of its window; 1 for one that takes less than it is sent, 0 while it asked for a pause."""
    if connection.is_paused:
        return 0.0
    if connection.state is State.LAGGING:
        return 1.0
    limits = connection.shared.limits
    return max(connection.unacked_bytes / limits.unacked_bytes, connection.unsent_bytes / limits.unsent_bytes)


def _told(connection: Connection) -> dict[str, object]:
    quality = connection.quality
    rtt = quality.apparent_rtt_seconds
    payload: dict[str, object] = {"kind": "quality", "level": quality.level.value, "score": quality.score}
    if rtt is not None:
        payload["rtt_ms"] = round(rtt * 1000)
    return payload


__all__ = ["ACK_DELAY_SECONDS", "MEASURE_SECONDS", "Qualities", "note_round_trip", "thresholds_of"]
