"""Exponential backoff with full jitter, and the lower bound that a server may give. Takes its random numbers."""

import random

_MAX_EXPONENT = 30
"""Beyond it the cap has long been reached; keeps the power finite."""


class Backoff:
    """One per session: two that lost the same server at the same time wait for different times."""

    def __init__(self, base_seconds: float, max_seconds: float, rng: random.Random) -> None:
        self._base_seconds = base_seconds
        self._max_seconds = max_seconds
        self._rng = rng
        self.attempt = 0
        """Failures since the last connection that was stable: `retry=` of the next one."""

    def reset(self) -> None:
        self.attempt = 0

    def next_delay_seconds(self, at_least_seconds: float | None = None) -> float:
        """The wait before the next attempt; counts one failure.

        `at_least_seconds` is a server's word: never earlier, and at most a quarter later, because many clients may
        have been given the same.
        """
        ceiling = min(self._max_seconds, self._base_seconds * 2 ** min(self.attempt, _MAX_EXPONENT))
        self.attempt += 1
        if at_least_seconds:
            return at_least_seconds + self._rng.uniform(0, at_least_seconds / 4)
        return self._rng.uniform(0, ceiling)


__all__ = ["Backoff"]
