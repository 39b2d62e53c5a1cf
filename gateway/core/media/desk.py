"""Gives media out: from the bus to the lanes of those connections of the session that take it (B10).

Owns the one timer of all lanes where something waits. Must never block, nor write before the text that came with the
same batch of the bus. Called by the subscriber, by the intake for its own gateway, and by visits (pongs).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.core.media.lane import MediaLane, MediaMemory
from gateway.core.rates import Rates
from gateway.domain.sessions.quality import Level
from gateway.domain.streams.media_queue import MediaPolicy
from gateway.domain.wire.bus import decode_media_notice
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.ids import SessionRef
from gateway.domain.wire.media import MediaHead, read_head
from gateway.domain.wire.ws_frames import encode_binary
from gateway.ports import Clock
from gateway.settings import MediaSettings

if TYPE_CHECKING:
    from gateway.core.connection import Connection
    from gateway.core.hub import Hub

LOOK_SECONDS: Final = 0.02
"""Between two looks at lanes where something waits: no event says that a kernel has sent what it had."""
REST_SECONDS: Final = 0.25
"""The same where nothing waits but a count to be told, or video to come back."""
DELIVERIES_A_SECOND: Final = 8_000
"""Of one frame to one client: what a third of a core writes. The loop is the one that text needs; beyond it frames are
dropped, whoever sends them and however small they are."""
DELIVERIES_AT_ONCE: Final = 2_000
SESSION_SHARE: Final = 2
"""One session gets half of it at most."""


class MediaDesk:
    """One per gateway. `policy` and `is_poor` may be set at any time."""

    def __init__(self, hub: "Hub", settings: MediaSettings, clock: Clock) -> None:
        self._hub = hub
        self._settings = settings
        self._memory = MediaMemory(settings.memory_bytes)
        self._clock = clock
        self._budget = Rates(DELIVERIES_A_SECOND, DELIVERIES_AT_ONCE, clock)
        self._budgets = Rates(DELIVERIES_A_SECOND / SESSION_SHARE, DELIVERIES_AT_ONCE // SESSION_SHARE, clock)
        """Of each session."""
        self._lanes: dict[MediaLane, Connection] = {}
        """Where something waits."""
        self._resting: dict[MediaLane, Connection] = {}
        self._rested_at = 0.0
        self._is_due = False
        self._timer: asyncio.TimerHandle | None = None
        default = MediaPolicy(max_age_seconds=settings.max_age_seconds)
        self.policy: Callable[[SessionRef], MediaPolicy] = lambda _: default
        """How the media of a session is degraded."""
        self.is_poor: Callable[[Connection], bool] = lambda connection: connection.quality.level is Level.POOR
        """Whether a connection's link is poor: then it gets audio only."""

    def equip(self, connection: "Connection", capabilities: Capabilities) -> None:
        """A new connection that said what it takes."""
        connection.capabilities = capabilities
        if capabilities.takes_media:
            connection.media = MediaLane(connection, self._settings, self._memory)

    @property
    def waiting_bytes(self) -> int:
        """Of all lanes."""
        return self._memory.used_bytes

    def has_listeners(self, ref: SessionRef, head: MediaHead) -> bool:
        """Somebody here takes such a frame."""
        session = self._hub.session(ref.key)
        lanes = () if session is None else (connection.media for connection in session.connections)
        return any(lane is not None and lane.wants(head) for lane in lanes)

    def on_media(self, message: bytes) -> None:
        """A bus message. Raises ValueError when it is malformed, of another version too."""
        key, frame = decode_media_notice(message)
        self.deliver(key, frame)

    def deliver(self, key: bytes, frame: bytes) -> None:
        """To every connection of the session that takes it, but those of its sender. Raises ValueError."""
        session = self._hub.session(key)
        if session is None:
            return
        head = read_head(frame)
        takers = [(c, lane) for c in session.connections if (lane := c.media) is not None and lane.wants(head)]
        if not takers:
            return
        if self._budgets.take(key, len(takers)) or self._budget.take(None, len(takers)):
            for connection, lane in takers:
                lane.refuse(head)
                self._resting[lane] = connection  # to be told
            self._come_again()
            return
        data, now, policy = encode_binary(frame), self._clock(), self.policy(session.ref)
        for connection, lane in takers:
            lane.offer(head, data, now, policy)
            self._wake(lane, connection)

    def upload_dropped(self, connection: "Connection") -> None:
        """A frame that it sent was not taken."""
        if connection.media is not None:
            connection.media.upload_dropped()
            self._wake(connection.media, connection)

    def on_pong(self, connection: "Connection", payload: bytes) -> None:
        """The client has answered a ping: of the heartbeats, or of its media."""
        lane = connection.media
        if lane is not None and lane.on_pong(payload) and lane.waiting_bytes:
            self._wake(lane, connection)

    def _wake(self, lane: MediaLane, connection: "Connection") -> None:
        self._lanes[lane] = connection
        self._resting.pop(lane, None)
        if not self._is_due:
            # After what is under way now: text of the same batch is written first.
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.turn)

    def turn(self) -> None:
        """Look at every lane where something waits, and come again while there is one. Its timer calls it."""
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        if now - self._rested_at >= REST_SECONDS:
            self._rested_at = now
            self._lanes |= self._resting
            self._resting.clear()
        for lane, connection in list(self._lanes.items()):
            lane.turn(now, self.policy(connection.session.ref), is_poor=self.is_poor(connection))
            if not lane.waiting_bytes:
                del self._lanes[lane]
                if not lane.is_idle:
                    self._resting[lane] = connection
        self._come_again()

    def _come_again(self) -> None:
        if (self._lanes or self._resting) and self._timer is None and not self._is_due:
            seconds = LOOK_SECONDS if self._lanes else REST_SECONDS
            self._timer = asyncio.get_running_loop().call_later(seconds, self.turn)


__all__ = ["DELIVERIES_AT_ONCE", "DELIVERIES_A_SECOND", "LOOK_SECONDS", "SESSION_SHARE", "MediaDesk"]
