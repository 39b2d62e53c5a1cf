"""How often somebody may do something: token buckets by key, bounded in number. Pure but for the clock given in."""

from collections.abc import Callable, Hashable
from typing import Final

MAX_KEYS: Final = 20_000
"""The one longest unused goes: it is full again by then, or nearly."""


class Rates:
    """`burst` at once, then `per_second` on average, for each key on its own."""

    __slots__ = ("_buckets", "_burst", "_clock", "_per_second")

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: dict[Hashable, tuple[float, float]] = {}
        """Key -> (tokens left, when that was)."""

    def take(self, key: Hashable, cost: float = 1) -> float:
        """0 when it may, and `cost` is taken; else seconds until it may."""
        now = self._clock()
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        wait = 0.0 if left >= cost else (cost - left) / self._per_second
        if not wait:
            left -= cost
        if len(self._buckets) >= MAX_KEYS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[key] = left, now
        return wait


__all__ = ["MAX_KEYS", "Rates"]
