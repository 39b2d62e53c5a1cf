"""Whether a channel still lives: when to ask, and when no answer means death. Pure.

A late timer of our own proves nothing: after a pause of the process or of the tab it is asked once more.
"""

from enum import Enum

_LATE_SECONDS = 1.0
"""A deadline that is looked at so much later was missed by us."""


class Due(Enum):
    NOTHING = "nothing"
    ASK = "ask"
    DEAD = "dead"


class Liveness:
    """Of one channel. `interval`: a question at least so often, which also measures the round trip."""

    def __init__(
        self,
        interval_seconds: float,
        run_quiet_seconds: float,
        probe_timeout_seconds: float,
        keep_alive_seconds: float | None,
        now: float,
    ) -> None:
        self.interval_seconds = interval_seconds
        self._run_quiet_seconds = run_quiet_seconds
        self._probe_timeout_seconds = probe_timeout_seconds
        self._keep_alive_seconds = keep_alive_seconds
        self.is_streaming = False
        """A run is open: silence is suspicious sooner."""
        self.is_stalled = False
        """We do not read: silence is ours."""
        self.heard_at = self._sent_at = self._pinged_at = now
        self._asked_at: float | None = None
        self._is_wanted = False

    def heard(self, now: float) -> None:
        """Any byte is life, though only the pong answers the question."""
        self.heard_at = now

    def sent(self, now: float) -> None:
        self._sent_at = now

    def asked(self, now: float) -> None:
        self._asked_at = self._pinged_at = self._sent_at = now
        self._is_wanted = False

    def answered(self) -> None:
        self._asked_at = None

    def probe(self) -> None:
        """Something happened that kills sockets in silence: ask now."""
        self._is_wanted = True

    def look(self, now: float) -> Due:
        if self._is_wanted:
            return Due.ASK
        if self.is_stalled:
            return Due.NOTHING
        if self._asked_at is not None:
            deadline = self._answer_deadline(self._asked_at)
            if now < deadline:
                return Due.NOTHING
            return Due.ASK if now - deadline > _LATE_SECONDS else Due.DEAD
        return Due.ASK if now >= self._ask_deadline() else Due.NOTHING

    def deadline(self) -> float:
        """When to look again."""
        if self._asked_at is not None:
            return self._answer_deadline(self._asked_at)
        return self._ask_deadline()

    def _answer_deadline(self, asked_at: float) -> float:
        return max(self.heard_at, asked_at) + self._probe_timeout_seconds

    def _ask_deadline(self) -> float:
        quiet = min(self._run_quiet_seconds, self.interval_seconds) if self.is_streaming else self.interval_seconds
        deadline = min(self.heard_at + quiet, self._pinged_at + self.interval_seconds)
        if self._keep_alive_seconds is not None:
            deadline = min(deadline, self._sent_at + self._keep_alive_seconds)
        return deadline


__all__ = ["Due", "Liveness"]
