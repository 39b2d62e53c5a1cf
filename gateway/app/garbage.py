"""Looks for cycles of garbage so that nobody's text waits: what is young often, what is old only when memory has grown.

A pass takes half a microsecond an object and holds the loop. Python's own passes come when many more objects were made
than freed: with thousands of connections each held the loop for 5 to 15 ms, every second of a roll, and found nothing,
as connections, polls and runs are made to leave no cycles. Here what survives its first tenth of a second is exempt
from then on (`gc.freeze`), and a pass is of what was made since: below a millisecond. Cycles that got old before they
were garbage (a library's, an error's) wait for a pass over everything. Called by serve: it is the process's own.
"""

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Final

import structlog

from gateway.domain.admission.pressure import Memory

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.1
BURST_OBJECTS: Final = 10_000
"""Made and not freed between two looks, from which Python makes a pass of its own."""
NEVER: Final = 1_000_000
MEMORY_EVERY: Final = 100
"""Looks; reading memory opens a file or two."""
GROWTH: Final = 1.5
"""Times what was in use after the last pass over everything."""
LEAST_GROWTH_BYTES: Final = 256 * 1024 * 1024
"""And at least so much more: the clients of a dead neighbour are no garbage, and a pass in their storm delays all."""
LEAST_SHARE: Final = 0.25
"""Of the memory limit, where that is less."""


class Garbage:
    """One per process. `begin`, then `run` for ever."""

    def __init__(self, read_memory: Callable[[], Memory], clock: Callable[[], float] = time.monotonic) -> None:
        """Where nobody knows the memory in use (0), only what is young is looked at."""
        self._read_memory = read_memory
        self._clock = clock
        self._looks = 0
        self._used_bytes = 0
        """After the last pass over everything, or the least since."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def begin(self) -> None:
        """What is loaded stays."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(BURST_OBJECTS, NEVER, NEVER)
        self._used_bytes = self._read_memory().used_bytes

    def look(self) -> None:
        gc.collect(0)
        gc.freeze()
        self._looks += 1
        if self._looks % MEMORY_EVERY == 0 and self._has_grown():
            self._look_at_all()

    def _has_grown(self) -> bool:
        memory = self._read_memory()
        used, limit = memory.used_bytes, memory.limit_bytes
        base = self._used_bytes = min(self._used_bytes, used)  # clients that left have made room
        least_bytes = min(LEAST_GROWTH_BYTES, limit * LEAST_SHARE or LEAST_GROWTH_BYTES)
        mark = max(base * GROWTH, base + least_bytes)
        return used > (min(mark, (base + limit) / 2) if limit else mark)

    def _look_at_all(self) -> None:
        """Holds the loop for up to half a second with 20,000 connections; a few times in a gateway's life."""
        began = self._clock()
        gc.unfreeze()
        found = gc.collect()
        gc.freeze()
        self._used_bytes = self._read_memory().used_bytes
        log.info("garbage_collected", objects=found, seconds=round(self._clock() - began, 3), used=self._used_bytes)


__all__ = ["GROWTH", "LEAST_GROWTH_BYTES", "LEAST_SHARE", "MEMORY_EVERY", "Garbage"]
