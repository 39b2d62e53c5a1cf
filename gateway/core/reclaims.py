"""Open sockets whose route is lost claim again, a few at a time: a Redis that came back empty has lost all at once.

Whoever finds one lost (renewals, repair, comparisons) adds it to the hub's one queue.
"""

import asyncio
from typing import Final

from gateway.core.connection import Connection
from gateway.core.tasks import TaskOwner

AT_ONCE: Final = 32
"""So many claims an append or a new connect waits behind at most; 10,000 sockets have their routes within about 4 s."""
PAUSE_SECONDS: Final = 0.01
"""Between so many, for everybody else's turn."""


class Reclaims:
    """One per gateway. `add` is idempotent while a connection waits; what ended meanwhile is passed over."""

    def __init__(self, owner: TaskOwner) -> None:
        self._owner = owner
        self._waiting: dict[Connection, None] = {}
        """In the order in which they were found."""
        self._is_running = False

    def add(self, connection: Connection) -> None:
        self._waiting[connection] = None
        if not self._is_running:
            self._is_running = True
            self._owner.start("reclaim", self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with asyncio.TaskGroup() as group:
                    for connection in self._take():
                        group.create_task(connection.reclaim())
                if self._waiting:
                    await asyncio.sleep(PAUSE_SECONDS)
        finally:
            self._is_running = False

    def _take(self) -> list[Connection]:
        some: list[Connection] = []
        while self._waiting and len(some) < AT_ONCE:
            connection = next(iter(self._waiting))
            del self._waiting[connection]
            if not connection.is_ending:
                some.append(connection)
        return some


__all__ = ["AT_ONCE", "PAUSE_SECONDS", "Reclaims"]
