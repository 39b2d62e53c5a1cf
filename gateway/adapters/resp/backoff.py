"""How long to wait before the next attempt to connect: exponential with full jitter. Pure but for the `rng` given."""

import random


class Backoff:
    """`delay_seconds` is uniform between 0 and a bound that doubles with each attempt, up to the greatest one."""

    def __init__(self, min_ms: int, max_ms: int, rng: random.Random) -> None:
        self._min_seconds = min_ms / 1000
        self._max_seconds = max_ms / 1000
        self._rng = rng
        self._bound_seconds = self._min_seconds

    def delay_seconds(self) -> float:
        delay = self._rng.uniform(0, self._bound_seconds)
        self._bound_seconds = min(self._bound_seconds * 2, self._max_seconds)
        return delay

    def reset(self) -> None:
        """The connection proved healthy: the next loss is a new story."""
        self._bound_seconds = self._min_seconds


__all__ = ["Backoff"]
