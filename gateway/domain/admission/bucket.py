"""One bucket, and the queue of those it sent away: each is told a time at which there is a token for it. Pure state.

A storm's clients that were refused in the same moment return one token apart and not in step (K15). A promise is no
reservation: whoever comes first gets the token, and who finds none is told a time behind all others.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from gateway.domain.admission.rate import FULL, SECOND_NS, Rate

HORIZON_SECONDS: Final = 30.0
"""Nobody is told to stay away for longer: a queue beyond it is spread over its second half, with no place kept."""
SLACK: Final = 0.25
"""A told time is up to a quarter later, by chance: a tenth of the tokens is left for those who come unasked."""


class Turn(NamedTuple):
    """When to come back, from now: some time between the two, by chance."""

    soonest_seconds: float
    latest_seconds: float


@dataclass(slots=True)
class Bucket:
    """`now_ns` never goes back."""

    rate: Rate
    full_at_ns: int = FULL
    promised_until_ns: int = FULL
    """The first time that nobody was told yet."""

    def take(self, now_ns: int) -> bool:
        after_ns = self.rate.take(self.full_at_ns, now_ns)
        if after_ns is None:
            return False
        if self.full_at_ns <= now_ns:
            self.promised_until_ns = FULL  # it filled up: who was told a time did not come, and is not waited for
        self.full_at_ns = after_ns
        return True

    def has_token(self, now_ns: int) -> bool:
        return self.rate.wait_ns(self.full_at_ns, now_ns) == 0

    def book(self, now_ns: int) -> Turn:
        """For one that found no token: the next time that nobody was told."""
        at_ns = self._next_ns(now_ns)
        wait = (at_ns - now_ns) / SECOND_NS
        if wait > HORIZON_SECONDS:
            return Turn(HORIZON_SECONDS / 2, HORIZON_SECONDS)
        self.promised_until_ns = at_ns + self.rate.interval_ns
        return Turn(wait, wait * (1 + SLACK))

    def guess(self, now_ns: int) -> Turn:
        """For one that only asks, after a refusal that it could not read: within the times that were told."""
        soonest_ns = self.rate.wait_ns(self.full_at_ns, now_ns)
        latest = min(HORIZON_SECONDS, (self._next_ns(now_ns) - now_ns) / SECOND_NS)
        return Turn(min(soonest_ns / SECOND_NS, latest), latest)

    def promised_seconds(self, now_ns: int) -> float:
        """How far times were told ahead."""
        return max(0.0, (self.promised_until_ns - now_ns) / SECOND_NS)

    def _next_ns(self, now_ns: int) -> int:
        return max(self.promised_until_ns, now_ns + self.rate.wait_ns(self.full_at_ns, now_ns))


__all__ = ["HORIZON_SECONDS", "SLACK", "Bucket", "Turn"]
