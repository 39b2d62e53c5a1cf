"""How a run's tokens come: time to the first, gaps, rate, stalls. Pure; one object for a run at its ingesting gateway.

A token is what the provider sent as one piece of text or thinking. Called by core/runs for every piece: be cheap.
"""

from typing import NamedTuple

STALL_SECONDS = 3.0
"""A gap this long is seen by the reader as a standstill."""
RHYTHM_SECONDS = 1.0
"""A rhythm covers so much, and is told no more often."""


class Rhythm(NamedTuple):
    """For animations (protocol.md 1): rate over the last second or so, and the mean gap in it."""

    tokens_per_second: float
    gap_ms: int


class Tempo:
    """Times are monotonic seconds."""

    __slots__ = (
        "_rhythm_at",
        "_rhythm_tokens",
        "first_at",
        "last_at",
        "longest_gap_seconds",
        "stalls",
        "started_at",
        "tokens",
    )

    def __init__(self, now: float) -> None:
        self.started_at = now
        self.first_at: float | None = None
        self.last_at = now
        self.tokens = 0
        self.stalls = 0
        self.longest_gap_seconds = 0.0
        """Between two tokens."""
        self._rhythm_at = now
        self._rhythm_tokens = 0

    def on_tokens(self, count: int, now: float) -> float | None:
        """`count` (at least 1) came at once. Returns the gap before them in seconds; None for the first."""
        gap = None
        if self.first_at is None:
            self.first_at = self._rhythm_at = now
        else:
            gap = now - self.last_at
            self.longest_gap_seconds = max(self.longest_gap_seconds, gap)
            if gap >= STALL_SECONDS:
                self.stalls += 1
        self.last_at = now
        self.tokens += count
        return gap

    @property
    def first_token_seconds(self) -> float | None:
        """From the start of the run; None before the first token."""
        return None if self.first_at is None else self.first_at - self.started_at

    def tokens_per_second(self) -> float | None:
        """From the first token to the last; None when that is no time."""
        if self.first_at is None or self.last_at <= self.first_at:
            return None
        return (self.tokens - 1) / (self.last_at - self.first_at)

    def rhythm(self, now: float) -> Rhythm | None:
        """What changed since the last call; None when it is not time yet, or nothing came before."""
        elapsed = now - self._rhythm_at
        if self.first_at is None or elapsed < RHYTHM_SECONDS:
            return None
        tokens = self.tokens - self._rhythm_tokens
        self._rhythm_at, self._rhythm_tokens = now, self.tokens
        rate = tokens / elapsed
        return Rhythm(round(rate, 1), round(elapsed * 1000 / tokens) if tokens else round((now - self.last_at) * 1000))


__all__ = ["RHYTHM_SECONDS", "STALL_SECONDS", "Rhythm", "Tempo"]
