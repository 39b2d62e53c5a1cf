"""Repeats a store call until a deadline, with full jitter, and tells whether an unheard attempt may have worked.

For calls that may be repeated: they are idempotent, or the caller can tell. Called by the exchange's parts.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from gateway.core.refusals import GivenUp, unavailable
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import Clock, StoreUnavailable
from gateway.settings import RedisSettings

STALE_NOTES: Final = 3
"""Times that a deadline is noted again because the note was too old when its script ran."""

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
                given_up = GivenUp(exc.reason, is_unknown, exc.error_code)
            left = deadline - self.clock()
            if left <= 0:
                raise _unavailable(given_up)
            await asyncio.sleep(min(self.rng.uniform(0, bound), left))
            bound = min(bound * 2, longest)

    async def noted(
        self,
        note: Callable[[], Awaitable[int]],
        call: Callable[[int], Awaitable[_T]],
        is_stale: Callable[[_T], bool],
    ) -> tuple[_T, bool]:
        """Note a deadline (Deadlines.note), then write the state that it is for; again when the note was too old by
        then. The answer may be stale still. Raises RelayError UNAVAILABLE.
        """
        was_unknown, attempt = False, 0
        while True:
            attempt += 1
            outcome, is_unknown = await self.until(partial(call, await self.answer(note)))
            was_unknown = was_unknown or is_unknown
            if attempt == STALE_NOTES or not is_stale(outcome):
                return outcome, was_unknown

    async def answer(self, call: Callable[[], Awaitable[_T]]) -> _T:
        """For calls where it does not matter how often they took effect."""
        answer, _ = await self.until(call)
        return answer


def _unavailable(given_up: GivenUp) -> RelayError:
    outcome = "unknown" if given_up.is_unknown else "not_written"
    if given_up.code is ErrorCode.UNREPLICATED:
        return unavailable(given_up)
    text = "it may have taken effect: ask again" if given_up.is_unknown else "nothing was written"
    return RelayError(ErrorCode.UNAVAILABLE, f"Redis did not answer in time; {text}", {"outcome": outcome})


__all__ = ["Attempts"]
