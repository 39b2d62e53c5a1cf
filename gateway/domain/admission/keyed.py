"""Limits of each address and each user: how often, and how many at once. Pure state, bounded whatever keys come."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from gateway.domain.admission.rate import FULL, SECOND_NS, Rate

MAX_KEYS: Final = 65_536
"""About 10 MB. A flood of more addresses pushes out who came least lately; that one begins with a full bucket."""

FULL_SECONDS: Final = 10.0
"""When to look again whether one of the own connections has ended."""

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class KeyedRates(Generic[K]):
    """One bucket a key. `rate` None: no limit, and nothing is kept."""

    rate: Rate | None
    max_keys: int = MAX_KEYS
    _full_at_ns: dict[K, int] = field(default_factory=dict)
    """In the order of their last taking."""

    def __len__(self) -> int:
        return len(self._full_at_ns)

    def wait_seconds(self, key: K, now_ns: int, weight: float = 1.0) -> float:
        """0: `take` would find a token."""
        if self.rate is None:
            return 0.0
        return self.rate.wait_ns(self._full_at_ns.get(key, FULL), now_ns, weight) / SECOND_NS

    def take(self, key: K, now_ns: int, weight: float = 1.0) -> bool:
        if self.rate is None:
            return True
        full_at_ns = self._full_at_ns.pop(key, FULL)  # put in again below, as the newest
        after_ns = self.rate.take(full_at_ns, now_ns, weight)
        self._full_at_ns[key] = full_at_ns if after_ns is None else after_ns
        if len(self._full_at_ns) > self.max_keys:
            del self._full_at_ns[next(iter(self._full_at_ns))]
        return after_ns is not None


class Over(NamedTuple):
    """Which limit is reached, and when it may be no longer."""

    what: str
    """rate or connections."""
    wait_seconds: float


@dataclass(slots=True)
class KeyLimits(Generic[K]):
    """Of each key: how often it connects, and how many connections it has at once. `most` 0: any number.

    Connections at once are bounded by the places of the gateway, so their table is.
    """

    rates: KeyedRates[K]
    most: int
    _counts: dict[K, int] = field(default_factory=dict)

    @property
    def is_set(self) -> bool:
        return bool(self.most or self.rates.rate)

    def __len__(self) -> int:
        """Keys that something is kept of."""
        return max(len(self.rates), len(self._counts))

    def refuses(self, key: K, now_ns: int, weight: float, *, times: int = 1, has_place: bool) -> Over | None:
        """`times`: as many as `most`, for this one. `has_place` False: what is asked for holds no connection."""
        wait_seconds = self.rates.wait_seconds(key, now_ns, weight)
        if wait_seconds:
            return Over("rate", wait_seconds)
        if has_place and self.most and self._counts.get(key, 0) >= self.most * times:
            return Over("connections", FULL_SECONDS)
        return None

    def take(self, key: K, now_ns: int, weight: float, *, has_place: bool) -> None:
        """What was not refused. With `has_place` one `leave` follows."""
        self.rates.take(key, now_ns, weight)
        if has_place and self.most:
            self._counts[key] = self._counts.get(key, 0) + 1

    def leave(self, key: K) -> None:
        if not self.most:
            return
        left = self._counts[key] - 1
        if left:
            self._counts[key] = left
        else:
            del self._counts[key]


__all__ = ["FULL_SECONDS", "MAX_KEYS", "KeyLimits", "KeyedRates", "Over"]
