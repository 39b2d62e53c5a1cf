"""How long to wait before trying Redis again: full jitter below a doubling ceiling, no step in unison (B06, C12)."""

import asyncio
import random
from typing import Final

_FIRST_SECONDS: Final = 0.05
_LONGEST_SECONDS: Final = 2.0


class Pauses:
    """One sequence of pauses; begin a new one after each success."""

    __slots__ = ("_ceiling", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._ceiling = _FIRST_SECONDS

    async def wait(self) -> None:
        seconds = self._rng.uniform(0, self._ceiling)
        self._ceiling = min(self._ceiling * 2, _LONGEST_SECONDS)
        await asyncio.sleep(seconds)


__all__ = ["Pauses"]
