"""How good a connection is: good, fair or poor, without flapping (A4, A11, B7). Pure: monotonic seconds come in.

Getting worse counts at once, as what it is judged by is smoothed; getting better counts when it has lasted. Each signal
has two thresholds: one to get worse, a lower one to stop being so.
"""

from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

SMOOTHING: Final = 0.5
"""Weight of the newest sample: two good ones end what one bad one began."""
LASTS_SECONDS: Final = 3.0
"""Better for so long, it is better."""
UNSETTLED_SECONDS: Final = 10.0
"""So long a connection of a client that came back again and again is judged by that too."""
CALM: Final = 0.75
"""Share of a threshold below which a signal must fall to be better again."""
WORST: Final = 2.5
"""A round trip counts as so many times the poor threshold at most, or a recovery from minutes would take minutes."""
BACKLOG_FAIR: Final = 0.5
BACKLOG_POOR: Final = 0.8
"""Shares of the window."""
RETURNS_FAIR: Final = 3
RETURNS_POOR: Final = 6
"""Failed attempts, or connections within a minute."""


class Level(StrEnum):
    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"


_RANK: Final = {Level.GOOD: 0, Level.FAIR: 1, Level.POOR: 2}


class Thresholds(NamedTuple):
    """Round trips in seconds above which a connection is no longer good, or poor."""

    fair_rtt_seconds: float = 0.3
    poor_rtt_seconds: float = 0.8


class Quality:
    """One per connection; small. `level` is what counts now."""

    __slots__ = ("_awaited_rtt", "_backlog", "_better_since", "_returns", "_unsettled_until", "counted_at",
                 "hint_seconds", "level", "measured_at", "rtt_seconds", "sample", "thresholds", "told")  # fmt: skip

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds
        self.level = Level.GOOD
        self.told = Level.GOOD
        """What the client knows; whoever tells it sets this."""
        self.rtt_seconds: float | None = None
        """Smoothed; None: never measured."""
        self.sample: tuple[float, float] | None = None
        """The newest round trip, and when its answer came; it counts from the next look on (core/qualities.py)."""
        self.hint_seconds = 0.0
        """From sending to the newest acknowledgement: at least a round trip, so a long one is a reason to measure."""
        self.measured_at = -inf
        """When a measurement was last begun out of turn; whoever begins it sets this."""
        self.counted_at = -inf
        """When a round trip last went into the gateway's own figures; whoever counts sets this."""
        self._awaited_rtt = 0.0
        """Of the newest look: the round trip is at least that, as an answer is still awaited; or 0."""
        self._backlog = 0.0
        self._better_since: float | None = None
        self._returns = 0
        self._unsettled_until = -inf

    def on_returns(self, count: int, now: float) -> None:
        """At connect: how often the client failed to connect, or came back lately, whichever is more."""
        self._returns, self._unsettled_until = count, now + UNSETTLED_SECONDS

    def on_rtt(self, seconds: float) -> None:
        """A round trip was measured."""
        self.rtt_seconds = self._with(seconds)

    def look(self, now: float, backlog: float, waiting_seconds: float = 0.0) -> bool:
        """Judge anew; call it about once a second, less often while all is well. True: the level changed.

        `backlog`: share of the window that is unacknowledged or unsent, 1 for one that is behind. `waiting_seconds`:
        so long nothing at all came since a ping, so the round trip is at least that.
        """
        self._backlog += SMOOTHING * (min(backlog, 1.0) - self._backlog)
        rtt = self.rtt_seconds or 0.0
        self._awaited_rtt = self._with(waiting_seconds) if waiting_seconds > rtt else 0.0
        rtt = max(rtt, self._awaited_rtt)
        level = self._judged(rtt, now)
        if level is Level.GOOD and self.level is Level.GOOD:
            return False  # nearly always
        if _RANK[level] >= _RANK[self.level]:
            self._better_since = None
            is_changed = level is not self.level
            self.level = level
            return is_changed
        if self._better_since is None:
            self._better_since = now
        if now - self._better_since < LASTS_SECONDS:
            return False
        self._better_since, self.level = None, level
        return True

    @property
    def apparent_rtt_seconds(self) -> float | None:
        """As far as it is known: also the first answer that is late says something before it comes."""
        if self.rtt_seconds is None:
            return self._awaited_rtt or None
        return max(self.rtt_seconds, self._awaited_rtt)

    @property
    def score(self) -> float:
        """1 is perfect; about a half where poor begins."""
        rtt_share = (self.apparent_rtt_seconds or 0.0) / self.thresholds.poor_rtt_seconds
        return round(1 / (1 + rtt_share**2 + (self._backlog / BACKLOG_POOR) ** 2), 2)

    @property
    def summary(self) -> str:
        """For the client's route: level and score."""
        return f"{self.level} {self.score}"

    def _with(self, seconds: float) -> float:
        known = self.rtt_seconds
        seconds = min(seconds, self.thresholds.poor_rtt_seconds * WORST)
        return seconds if known is None else known + SMOOTHING * (seconds - known)

    def _judged(self, rtt: float, now: float) -> Level:
        returns = self._returns if now < self._unsettled_until else 0
        share = CALM if self.level is Level.POOR else 1.0
        if (
            rtt > self.thresholds.poor_rtt_seconds * share
            or self._backlog > BACKLOG_POOR * share
            or returns >= RETURNS_POOR
        ):
            return Level.POOR
        share = 1.0 if self.level is Level.GOOD else CALM
        if (
            rtt > self.thresholds.fair_rtt_seconds * share
            or self._backlog > BACKLOG_FAIR * share
            or returns >= RETURNS_FAIR
        ):
            return Level.FAIR
        return Level.GOOD


__all__ = ["CALM", "LASTS_SECONDS", "UNSETTLED_SECONDS", "WORST", "Level", "Quality", "Thresholds"]
