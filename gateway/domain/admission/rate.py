"""The rule of a token bucket, exact in any window: at most `per_second` x t + `burst` admitted. Pure.

The rule is immutable; the state of a bucket is one number, the nanosecond at which it is full again. Whole numbers,
each token rounded up: however long it runs, no rounding ever lets one in too many.
"""

from dataclasses import dataclass, field
from math import ceil
from typing import Final

SECOND_NS: Final = 1_000_000_000
FULL: Final = -(2**62)
"""The state of a bucket that nobody has taken from."""


def ns(seconds: float) -> int:
    return int(seconds * SECOND_NS)


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens come one by one; a bucket holds `burst` of them."""

    per_second: float
    burst: int
    interval_ns: int = field(init=False, repr=False)
    """From one token to the next: rounded up, and one more, because the times that come in were rounded, too."""
    depth_ns: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.per_second > 0 or self.burst < 1:
            raise ValueError("a rate is above 0, and its burst at least 1")
        object.__setattr__(self, "interval_ns", ceil(SECOND_NS / self.per_second) + 1)
        object.__setattr__(self, "depth_ns", self.burst * self.interval_ns)

    def take(self, full_at_ns: int, now_ns: int, weight: float = 1.0) -> int | None:
        """The state after `weight` tokens were taken (at most 1 here); None: there are not so many."""
        after_ns = max(full_at_ns, now_ns) + self._price_ns(weight)
        return after_ns if after_ns - now_ns <= self.depth_ns else None

    def wait_ns(self, full_at_ns: int, now_ns: int, weight: float = 1.0) -> int:
        """Until `weight` tokens are there if nobody takes any; 0: they are."""
        return max(0, max(full_at_ns, now_ns) + self._price_ns(weight) - self.depth_ns - now_ns)

    def tokens(self, full_at_ns: int, now_ns: int) -> float:
        """From 0 to `burst`."""
        return max(0.0, (self.depth_ns - max(0, full_at_ns - now_ns)) / self.interval_ns)

    def _price_ns(self, weight: float) -> int:
        return self.interval_ns if weight == 1.0 else ceil(self.interval_ns * weight)


__all__ = ["FULL", "SECOND_NS", "Rate", "ns"]
