"""When another channel is due beside the current one: a slot of the gateway, a wish of ours, a climb. Pure."""

import random

from relayrouter.channel import TICK_SECONDS
from relayrouter.ladder import Ladder
from relayrouter.states import ChannelKind


class Moves:
    """Times are those of the session's clock."""

    def __init__(self, ladder: Ladder, rng: random.Random) -> None:
        self._ladder = ladder
        self._rng = rng
        self._slot_at: float | None = None
        self._hint_at: float | None = None
        self._climb_at: float | None = None
        self._is_wanted = False

    def set_slot(self, now: float, after_seconds: float) -> None:
        """The gateway asked to come back then; jittered on top by at most a quarter."""
        self._slot_at = now + after_seconds + self._rng.uniform(0, after_seconds / 4)

    def set_retry(self, now: float, after_seconds: float) -> None:
        """A move failed: the same again then."""
        self._slot_at = now + after_seconds

    def note_hint(self, now: float, after_seconds: float) -> None:
        """What an `error` frame said of the next attempt: it counts when the channel is closed for it."""
        self._hint_at = now + after_seconds

    def want(self) -> None:
        self._is_wanted = True

    def plan_climb(self, now: float) -> None:
        self._climb_at = now + self._ladder.climb_delay_seconds() if self._ladder.above else None

    def arrived(self, now: float) -> None:
        """A channel is live: what was due is done."""
        self._slot_at = self._hint_at = None
        self._is_wanted = False
        self.plan_climb(now)

    def next_seconds(self, now: float) -> float | None:
        """None: nothing is planned."""
        due = [at for at in (self._slot_at, self._climb_at) if at is not None]
        return max(0.0, min(due) - now) if due else None

    def take_due(self, now: float) -> tuple[tuple[ChannelKind, ...], bool]:
        """Channels to try now, in this order; and whether the gateway asked for it."""
        if self._slot_at is not None and now + TICK_SECONDS >= self._slot_at:
            self._slot_at = None
            return (self._ladder.rung,), True
        if self._is_wanted:
            self._is_wanted = False
            return (self._ladder.rung,), False
        if self._climb_at is not None and now + TICK_SECONDS >= self._climb_at:
            return self._ladder.above, False
        return (), False

    def take_slot_seconds(self, now: float) -> float | None:
        """The channel ended before its slot: how long to wait for it."""
        slot_at, self._slot_at = self._slot_at, None
        return None if slot_at is None else max(slot_at - now, 0.0)

    def take_hint_seconds(self, now: float) -> float | None:
        hint_at, self._hint_at = self._hint_at, None
        return hint_at - now if hint_at is not None and hint_at > now else None


__all__ = ["Moves"]
