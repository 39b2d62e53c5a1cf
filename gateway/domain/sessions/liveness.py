"""Whether a peer is still there: pings with a nonce, misses, and an answer to what is written after silence.

The one mechanism behind C8, A12 and B3 (design.md 5.6). Pure: monotonic seconds come in, what to do comes out.
"""

from enum import Enum
from math import inf
from typing import Final

NONCE_BYTES: Final = 8
LOOK_SECONDS: Final = 1.0
"""Looks come at least so often; later only when the whole process was late."""


class Due(Enum):
    """What a look at a connection asks for."""

    NOTHING = "nothing"
    PING = "ping"
    """Send `next_nonce`."""
    DEAD = "dead"
    """Close 4408: nothing was heard where something had to be."""


class Liveness:
    """One per connection; small on purpose. Public are the times that say whether a look can lead to anything."""

    __slots__ = ("_interval", "_nonce", "_pinged_at", "_waits_for_pong", "answer_by", "heard_at", "missed", "ping_at")

    def __init__(self, heartbeat_seconds: float, now: float) -> None:
        self._interval = heartbeat_seconds
        self.heard_at = now
        """Last time that anything arrived from the peer."""
        self.missed = 0
        """Pings in a row that nothing answered."""
        self.ping_at = now + heartbeat_seconds
        """When the next heartbeat is due."""
        self.answer_by = inf
        """When something must have been heard, because something was written after silence."""
        self._nonce = 0
        self._pinged_at = now
        self._waits_for_pong = False

    def heard(self, now: float) -> None:
        """A frame, or any byte, arrived."""
        self.heard_at = now
        self.missed = 0
        self.answer_by = inf

    def showed_life(self, at: float) -> None:
        """It is known only now that the peer was there at that time; from before the newest ping it answers nothing."""
        if at > max(self.heard_at, self._pinged_at):
            self.heard(at)

    def pong(self, payload: bytes, now: float) -> float | None:
        """Round-trip seconds when it answers the newest ping; any other one says only that the peer lives (P05)."""
        self.heard(now)
        if not self._waits_for_pong or payload != self._nonce.to_bytes(NONCE_BYTES, "big"):
            return None
        self._waits_for_pong = False
        return now - self._pinged_at

    @property
    def waits_for_pong(self) -> bool:
        """The newest ping has not been answered by its pong."""
        return self._waits_for_pong

    def silent_seconds(self, now: float) -> float:
        """For so long nothing at all has come since the newest ping; 0 when something did."""
        return now - self._pinged_at if self._waits_for_pong and self.heard_at <= self._pinged_at else 0.0

    def next_nonce(self, now: float) -> bytes:
        """The payload of the ping that is sent now."""
        self._nonce += 1
        self._pinged_at = now
        self._waits_for_pong = True
        self.ping_at = now + self._interval
        return self._nonce.to_bytes(NONCE_BYTES, "big")

    def is_about_to_miss(self, now: float) -> bool:
        """`look` would count a miss or more now: worth asking the kernel whether bytes arrived (A01)."""
        return now >= self.answer_by or (self._waits_for_pong and now >= self.ping_at)

    def look(
        self, now: float, written_at: float, *, silence_seconds: float, answer_seconds: float, max_missed: int
    ) -> Due:
        """`written_at`: the last write to the peer."""
        if now >= self.answer_by:
            return Due.DEAD
        if self.answer_by == inf and written_at - self.heard_at >= silence_seconds:
            # Counted from the write, but no peer has to answer before it was asked: the process may have been frozen.
            self.answer_by = max(written_at, now - LOOK_SECONDS) + answer_seconds
            return Due.PING
        if now < self.ping_at:
            return Due.NOTHING
        if self._waits_for_pong and self.heard_at <= self._pinged_at:
            self.missed += 1
            if self.missed >= max_missed:
                return Due.DEAD
        return Due.PING


__all__ = ["LOOK_SECONDS", "NONCE_BYTES", "Due", "Liveness"]
