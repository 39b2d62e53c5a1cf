"""A token bucket that may be in debt: what is larger than the bucket passes when it is full, and is paid for later.

Granted in any interval of t seconds: at most rate * t + max(capacity, largest cost). Pure: monotonic seconds come in.
"""


class Bucket:
    """Of one limit. Full at first."""

    __slots__ = ("_at", "_level", "capacity", "rate")

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        """`rate`: tokens a second, above 0. `capacity`: what may be had at once, above 0."""
        self.rate = rate
        self.capacity = capacity
        self._level = capacity
        self._at = now

    def level(self, now: float) -> float:
        """Tokens there are; below 0: debt."""
        if now > self._at:
            self._level = min(self.capacity, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def wait_seconds(self, cost: float, now: float, depth: float = 0.0) -> float:
        """0: it may be charged. Else how long that takes when nobody else is charged meanwhile.

        `depth`: so far into debt may whoever asks go.
        """
        missing = min(cost, self.capacity) - depth - self.level(now)
        return max(0.0, missing / self.rate)

    def charge(self, cost: float, now: float) -> None:
        """Whether or not there is enough."""
        self._level = self.level(now) - cost

    def resize(self, rate: float, capacity: float, now: float) -> None:
        """From now on. What there is stays, up to the new capacity; a debt stays."""
        self._level = min(capacity, self.level(now))
        self.rate = rate
        self.capacity = capacity


__all__ = ["Bucket"]
