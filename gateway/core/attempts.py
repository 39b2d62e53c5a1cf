"""Repeats a store call until a deadline, with full jitter, and tells whether an unheard attempt may have worked.

For calls that may be repeated: they are idempotent, or the caller can tell. Called by the exchange's parts.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from gateway.core.refusals import GivenUp
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import Clock, StoreUnavailable
from gateway.settings import RedisSettings

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Attempts:
    """One per gateway."""

    settings: RedisSettings
    clock: Clock
    rng: random.Random

    async def until(self, call: Callable[[], Awaitable[_T]]) -> tuple[_T, bool]:
        """The answer, and whether an earlier attempt may have taken effect. Raises RelayError UNAVAILABLE.

        `details.outcome` is then `unknown` or `not_written`.
        """
        deadline = self.clock() + self.settings.deadline_seconds
        bound, longest = self.settings.backoff_min_ms / 1000, self.settings.backoff_max_ms / 1000
        is_unknown = False
        while True:
            try:
                return await call(), is_unknown
            except StoreUnavailable as exc:
                is_unknown = is_unknown or exc.outcome_unknown
                given_up = GivenUp(exc.reason, is_unknown)
            left = deadline - self.clock()
            if left <= 0:
                raise _unavailable(given_up)
            await asyncio.sleep(min(self.rng.uniform(0, bound), left))
            bound = min(bound * 2, longest)


def _unavailable(given_up: GivenUp) -> RelayError:
    outcome = "unknown" if given_up.is_unknown else "not_written"
    text = "it may have taken effect: ask again" if given_up.is_unknown else "nothing was written"
    return RelayError(ErrorCode.UNAVAILABLE, f"Redis did not answer in time; {text}", {"outcome": outcome})


__all__ = ["Attempts"]
