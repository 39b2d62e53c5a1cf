"""One gateway's part of a tenant's rate: grants from its share, and knows what demand to tell the others."""

from math import exp
from typing import Final

from gateway.domain.quotas.bucket import Bucket

HUNGRY_SECONDS: Final = 2.0
"""So long after it refused somebody a gateway asks for all there is: how much is wanted it cannot know."""
FADE_SECONDS: Final = 1.5
"""Demand that was told falls so slowly: traffic comes in waves, and a share that leaves at once comes back too late."""


class SharedBucket:
    """Of one tenant and one rate. Monotonic seconds come in."""

    __slots__ = ("_burst_seconds", "_charged", "_short_at", "_told_at", "bucket", "told", "used", "whole")

    def __init__(self, whole: float, burst_seconds: float, share: float, now: float) -> None:
        """`whole`: tokens a second of all gateways; `share`: of this one until `grant` says otherwise."""
        self.whole = whole
        self._burst_seconds = burst_seconds
        self.bucket = Bucket(share, share * burst_seconds, now)
        self._charged = 0.0
        self.told = 0.0
        """Tokens a second, at the last `demand`."""
        self.used = 0.0
        """Tokens a second that were charged before it: without what had to wait."""
        self._told_at = now
        self._short_at: float | None = None

    def wait_seconds(self, cost: float, now: float, *, is_urgent: bool = False) -> float:
        """0: it may be charged. `is_urgent`: one bucketful of debt more is allowed. What must wait makes it hungry."""
        wait = self.bucket.wait_seconds(cost, now, self.bucket.capacity if is_urgent else 0.0)
        if wait:
            self._short_at = now
        return wait

    def charge(self, cost: float, now: float) -> None:
        self._charged += cost
        self.bucket.charge(cost, now)

    def is_short(self, now: float) -> bool:
        """Somebody had to wait a moment ago."""
        return self._short_at is not None and now - self._short_at < HUNGRY_SECONDS

    def demand(self, now: float) -> float:
        """Tokens a second, of the time since the last call: what to tell the others."""
        seconds = now - self._told_at
        if seconds > 0:
            self.used, self._charged, self._told_at = self._charged / seconds, 0.0, now
        if self.is_short(now):
            self.told = self.whole
        elif seconds <= 0:
            return self.told
        elif self.used >= self.told:
            self.told = min(self.used, self.whole)
        else:
            self.told = self.used + (self.told - self.used) * exp(-seconds / FADE_SECONDS)
        return self.told

    @property
    def asks_for_all(self) -> bool:
        """The others were told already that it is short."""
        return self.told >= self.whole

    def grant(self, share: float, now: float) -> None:
        """This many tokens a second from now on, and their part of the burst."""
        self.bucket.resize(share, share * self._burst_seconds, now)


__all__ = ["FADE_SECONDS", "HUNGRY_SECONDS", "SharedBucket"]
