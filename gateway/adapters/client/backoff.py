"""Exponential backoff with full jitter, and the lower bound that a server may give. Takes its random numbers."""

import random

from gateway.adapters.client.settings import BackoffSettings

_MAX_EXPONENT = 30
"""Beyond it the cap has long been reached; keeps the power finite (failure catalogue B05)."""


class Backoff:
    """One per client: two clients that lost the same server at the same time wait for different times."""

    def __init__(self, settings: BackoffSettings, rng: random.Random) -> None:
        self._settings = settings
        self._rng = rng
        self.attempt = 0
        """Failures since the last success."""

    def reset(self) -> None:
        self.attempt = 0

    def next_delay_seconds(self, at_least_seconds: float = 0.0) -> float:
        """The wait before the next attempt; counts one failure.

        `at_least_seconds` is a server's word for when to come back: never earlier; the jitter comes on top, because
        many clients may have been given the same (failure catalogue B04).
        """
        ceiling = min(self._settings.max_seconds, self._settings.base_seconds * 2 ** min(self.attempt, _MAX_EXPONENT))
        self.attempt += 1
        return at_least_seconds + self._rng.uniform(0, ceiling)


__all__ = ["Backoff"]
