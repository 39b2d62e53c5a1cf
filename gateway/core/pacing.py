"""A client that comes again and again (`retry=` 3 and more) is on a bad link, or chokes on what it is sent (A13).

Its replay comes in small pages with pauses, and what it can do without (media, quality, rhythm) is held back, until it
has been live for a while. Text keeps its order. Called by door (made), room and resume (pages), rhythm (extras).
"""

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.ports import Page

if TYPE_CHECKING:
    from gateway.core.connection import Connection

MIN_RETRIES: Final = 3
PAGE_BYTES: Final = 16 * 1024
PAUSE_SECONDS: Final = 0.1
"""160 KB/s: a link that takes less is behind anyhow, and a whole log comes within seven seconds."""
STABLE_SECONDS: Final = 10.0
"""Live for so long, it is like any other."""
LONGEST_SECONDS: Final = 30.0
"""Or after this: at that pace it might never catch up with a busy session."""


class Pacing:
    """Of one connection; those that need none have None in its place. Monotonic seconds come in."""

    __slots__ = ("_is_live", "_over_at")

    def __init__(self, now: float) -> None:
        self._over_at = now + LONGEST_SECONDS
        self._is_live = False

    def live(self, now: float) -> None:
        """It has caught up; the first time counts."""
        if not self._is_live:
            self._is_live = True
            self._over_at = min(self._over_at, now + STABLE_SECONDS)

    def is_over(self, now: float) -> bool:
        return now >= self._over_at

    async def pause(self, now: float) -> None:
        """Between two pages."""
        if not self.is_over(now):
            await asyncio.sleep(PAUSE_SECONDS)


def takes_extras(connection: "Connection") -> bool:
    """False: what it can do without is held back for now."""
    return connection.pacing is None or connection.pacing.is_over(connection.shared.clock())


def first_of(page: Page, max_bytes: int) -> Page:
    """Its first entries that fit, at least one when there is one."""
    size = 0
    for count, entry in enumerate(page.entries):
        size += len(entry.frame)
        if count and size > max_bytes:
            return Page(page.log, page.entries[:count], page.cuts)
    return page


__all__ = [
    "LONGEST_SECONDS",
    "MIN_RETRIES",
    "PAGE_BYTES",
    "PAUSE_SECONDS",
    "STABLE_SECONDS",
    "Pacing",
    "first_of",
    "takes_extras",
]
