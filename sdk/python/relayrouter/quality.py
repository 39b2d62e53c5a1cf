"""How good the network is, and whether deltas are worth handing out one by one. Pure."""

from collections import deque

from relayrouter.events import Level, QualityEvent
from relayrouter.options import Timing

_SMOOTHING = 0.25
"""Weight of the newest round trip."""
_BEST_RTT_SECONDS = 0.1
_LOSS_SECONDS = 60.0
_LOSS_COST = 0.15
"""Of the score, for each connection lost in the last minute."""
_STEP = 0.1
"""A change of the score below it is told to nobody."""


class Quality:
    """1 is perfect; at `degrade_rtt` a quiet link has 0.4."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._losses: deque[float] = deque(maxlen=16)
        self._bad_at: float | None = None
        self._told: QualityEvent | None = None
        self.rtt_seconds: float | None = None

    def note_rtt(self, rtt_seconds: float, now: float) -> None:
        known = self.rtt_seconds
        self.rtt_seconds = rtt_seconds if known is None else known + _SMOOTHING * (rtt_seconds - known)
        if self.rtt_seconds > self._timing.degrade_rtt:
            self._bad_at = now

    def note_lag(self, lag_seconds: float, now: float) -> None:
        """How long the oldest message has been waiting for the application."""
        if lag_seconds > self._timing.degrade_lag:
            self._bad_at = now

    def note_loss(self, now: float) -> None:
        self._losses.append(now)

    def is_degraded(self, now: float) -> bool:
        return self._bad_at is not None and now - self._bad_at < self._timing.recover_after

    def now(self, now: float) -> QualityEvent:
        score = 1.0
        if self.rtt_seconds is not None:
            span = self._timing.degrade_rtt - _BEST_RTT_SECONDS
            over = max(0.0, self.rtt_seconds - _BEST_RTT_SECONDS)
            score -= 0.6 * over / span if span > 0 else 0.0
        score -= _LOSS_COST * sum(1 for at in self._losses if now - at < _LOSS_SECONDS)
        score = round(min(1.0, max(0.0, score)), 3)
        level: Level = "good" if score >= 0.7 else "fair" if score >= 0.4 else "poor"
        return QualityEvent(score, level, self.rtt_seconds)

    def news(self, now: float) -> QualityEvent | None:
        """The quality, when it differs from what was last told."""
        current, told = self.now(now), self._told
        if told is not None and told.level == current.level and abs(told.score - current.score) < _STEP:
            return None
        self._told = current
        return current


__all__ = ["Quality"]
