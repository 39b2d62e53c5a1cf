"""Whether a peer is still there: pings with a nonce, misses, and an answer to what is written after silence.

The one mechanism behind C8, A12 and B3 (design.md 5.6). Pure: monotonic seconds come in, what to do comes out.
"""

from enum import Enum
from typing import Final

NONCE_BYTES: Final = 8


class Due(Enum):
    """What a look at a connection asks for."""

    NOTHING = "nothing"
    PING = "ping"
    """Send `next_nonce`."""
    DEAD = "dead"
    """Close 4408: nothing was heard where something had to be."""


class Liveness:
    """One per connection; small on purpose."""

    __slots__ = ("_answer_by", "_interval", "_nonce", "_pinged_at", "_waits_for_pong", "heard_at", "missed")

    def __init__(self, heartbeat_seconds: float, now: float) -> None:
        self._interval = heartbeat_seconds
        self.heard_at = now
        """Last time that anything arrived from the peer."""
        self.missed = 0
        """Pings in a row that nothing answered."""
        self._nonce = 0
        self._pinged_at = now
        self._waits_for_pong = False
        self._answer_by: float | None = None

    def heard(self, now: float) -> None:
        """A frame, or any byte, arrived."""
        self.heard_at = now
        self.missed = 0
        self._answer_by = None

    def pong(self, payload: bytes, now: float) -> float | None:
        """Round-trip seconds when it answers the newest ping; a late, repeated or unasked one only says: alive."""
        self.heard(now)
        if not self._waits_for_pong or payload != self._nonce.to_bytes(NONCE_BYTES, "big"):
            return None
        self._waits_for_pong = False
        return now - self._pinged_at

    def next_nonce(self, now: float) -> bytes:
        """The payload of the ping that is sent now."""
        self._nonce += 1
        self._pinged_at = now
        self._waits_for_pong = True
        return self._nonce.to_bytes(NONCE_BYTES, "big")

    def is_about_to_miss(self, now: float) -> bool:
        """`look` would count a miss or more now: worth asking the kernel whether bytes arrived (A01)."""
        is_unanswered = self._waits_for_pong and now - self._pinged_at >= self._interval
        return is_unanswered or (self._answer_by is not None and now >= self._answer_by)

    def look(
        self, now: float, written_at: float, *, silence_seconds: float, answer_seconds: float, max_missed: int
    ) -> Due:
        """Called about once a second. `written_at`: the last write to the peer."""
        if self._answer_by is not None and now >= self._answer_by:
            return Due.DEAD
        if self._answer_by is None and written_at - self.heard_at >= silence_seconds:
            # The look comes up to a second after the write: the answer is due counted from the write.
            self._answer_by = written_at + answer_seconds
            return Due.PING
        if now - self._pinged_at < self._interval:
            return Due.NOTHING
        if self._waits_for_pong and self.heard_at <= self._pinged_at:
            self.missed += 1
            if self.missed >= max_missed:
                return Due.DEAD
        return Due.PING


__all__ = ["NONCE_BYTES", "Due", "Liveness"]
