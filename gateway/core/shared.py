"""What all connections of a gateway have in common: limits, clocks, measures, and who reads the log for them."""

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Protocol

from gateway.domain.measures import Measures
from gateway.domain.sessions.quality import Thresholds
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import Clock
from gateway.settings import LimitSettings, LivenessSettings

if TYPE_CHECKING:
    from gateway.core.connection import Connection
    from gateway.core.local_session import LocalSession


class Resumer(Protocol):
    """What a connection asks of core.resume."""

    def catch_up(self, connection: "Connection") -> None:
        """It fell behind: read the log for it, in one task, until it is live again."""
        ...

    async def reclaim(self, connection: "Connection") -> None: ...


Equip = Callable[["Connection", Capabilities], None]
Prefer = Callable[[SessionRef], GatewayId | None]
Channels = Callable[[SessionRef], dict[str, dict[str, object]] | None]


class Tagger(Protocol):
    """core/plugged.py: delivery hooks."""

    def decorate(self, session: "LocalSession", seq: int, frame: bytes) -> bytes: ...


class Shared:
    """One per gateway."""

    __slots__ = (
        "channels",
        "clock",
        "equip",
        "limits",
        "liveness",
        "measures",
        "on_live",
        "prefer",
        "resumer",
        "stalled_at",
        "stalled_seconds",
        "tagger",
        "thresholds",
        "wall_clock",
    )

    def __init__(
        self,
        limits: LimitSettings,
        liveness: LivenessSettings,
        measures: Measures,
        clock: Clock,
        wall_clock: Clock,
        resumer: Resumer,
    ) -> None:
        self.limits = limits
        self.liveness = liveness
        self.measures = measures
        self.clock = clock
        self.wall_clock = wall_clock
        self.resumer = resumer
        self.tagger: Tagger | None = None
        """Composition sets it where delivery hooks are configured."""
        self.stalled_at = -inf
        self.stalled_seconds = 0.0
        """When the event loop was last late by much, and by how much (heartbeats): round trips of then include it."""
        self.thresholds = Thresholds()
        """Of the quality of connections; composition sets them."""
        self.on_live: Callable[[Connection], None] = lambda _: None
        """A connection has caught up; composition sets it (core/qualities.py)."""
        self.prefer: Prefer = lambda _: None
        """Which gateway a session's clients had better come to; composition sets it."""
        self.channels: Channels = lambda _: None
        """By which channels the route table prefers a session's text; None: as usual. Composition sets it."""
        self.equip: Equip = _text_only
        """Give a new connection what its capabilities need; composition sets it."""

    def decorate(self, session: "LocalSession", seq: int, frame: bytes) -> bytes:
        """A message of the log as clients get it."""
        return frame if self.tagger is None else self.tagger.decorate(session, seq, frame)

    def encode(self, session: "LocalSession", seq: int, frame: bytes) -> bytes:
        """The same as a WebSocket frame. The hub's hot path does it in place."""
        return encode_text(self.decorate(session, seq, frame))


def _text_only(_connection: "Connection", _capabilities: Capabilities) -> None:
    """Without media whatever is asked for is text."""


__all__ = ["Equip", "Prefer", "Resumer", "Shared", "Tagger"]
