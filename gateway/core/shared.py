"""What all connections of a gateway have in common: limits, clocks, measures, and who reads the log for them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from gateway.domain.measures import Measures
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


Prefer = Callable[[SessionRef], GatewayId | None]


class Tagger(Protocol):
    """core/plugged.py: delivery hooks."""

    def encode(self, session: "LocalSession", seq: int, frame: bytes) -> bytes: ...


class Shared:
    """One per gateway."""

    __slots__ = ("clock", "limits", "liveness", "measures", "prefer", "resumer", "tagger", "wall_clock")

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
        self.prefer: Prefer = lambda _: None
        """Which gateway a session's clients had better come to; composition sets it."""

    def encode(self, session: "LocalSession", seq: int, frame: bytes) -> bytes:
        """A message of the log as a WebSocket frame. The hub's hot path does the same in place."""
        return encode_text(frame) if self.tagger is None else self.tagger.encode(session, seq, frame)


__all__ = ["Prefer", "Resumer", "Shared", "Tagger"]
