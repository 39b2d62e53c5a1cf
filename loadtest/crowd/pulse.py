"""Whether a link of a crowd lives: asked after silence, given up without an answer, as the SDKs do. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

LOOK_SECONDS: Final = 0.5
CONNECT_SECONDS: Final = 10.0
"""From the first byte to the welcome."""
PROBE_SECONDS: Final = 5.0
LATE_SECONDS: Final = 1.0
"""A look that came so late missed answers itself: silence before it proves nothing."""


class Due(Enum):
    NOTHING = "nothing"
    ASK = "ask"
    DEAD = "dead"


@dataclass(slots=True)
class Pulse:
    heard_at: float
    """The last byte; before the first one: when it was opened."""
    _asked_at: float | None = None

    def look(self, now: float, late_seconds: float, quiet_seconds: float, *, is_welcome: bool) -> Due:
        """`late_seconds`: by which this look is behind its time."""
        if not is_welcome:
            return Due.DEAD if now - self.heard_at >= CONNECT_SECONDS else Due.NOTHING
        if self._asked_at is not None and self.heard_at <= self._asked_at:
            if now - self._asked_at < PROBE_SECONDS:
                return Due.NOTHING
            if late_seconds < LATE_SECONDS:
                return Due.DEAD
        elif now - self.heard_at < quiet_seconds:
            return Due.NOTHING
        self._asked_at = now
        return Due.ASK


__all__ = ["CONNECT_SECONDS", "LATE_SECONDS", "LOOK_SECONDS", "PROBE_SECONDS", "Due", "Pulse"]
