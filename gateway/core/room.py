"""How much of the log may be written to a client that is behind, and the wait until that is something.

Nothing while it asked for a pause. Called by resume (wait) and by the connection (acks, the end, pause and resume).
"""

import asyncio
from typing import TYPE_CHECKING

from gateway.core.pacing import PAGE_BYTES
from gateway.domain.sessions.states import State

if TYPE_CHECKING:
    from gateway.core.connection import Connection

CATCHING_UP = (State.RECOVERING, State.LAGGING)


class Room:
    """Of one connection."""

    __slots__ = ("_waiter", "is_paused")

    def __init__(self) -> None:
        self.is_paused = False
        """The client asked for no more text; control passes."""
        self._waiter: asyncio.Future[None] | None = None

    def bytes_for(self, connection: "Connection") -> int:
        """How much of the log may be written now; 0: wait."""
        if connection.state not in CATCHING_UP or self.is_paused:
            return 0
        limits = connection.shared.limits
        pacing = connection.pacing
        is_paced = pacing is not None and not pacing.is_over(connection.shared.clock())
        room = min(limits.replay_page_bytes, PAGE_BYTES) if is_paced else limits.replay_page_bytes
        if connection.is_acking:
            free = limits.unacked_bytes - connection.unacked_bytes
            room = min(room, free if free >= limits.unacked_bytes // 2 else 0)
        return room

    async def wait(self, connection: "Connection") -> int:
        """Until the client took, and acknowledged, enough. Returns how many bytes may be written; 0: it ends."""
        while True:
            link = connection.link
            if link is None or connection.is_ending:
                return 0
            await link.drained()
            if connection.pacing is not None:
                await connection.pacing.pause(connection.shared.clock())
            if room := self.bytes_for(connection):
                return room
            if link is connection.link and connection.state in CATCHING_UP:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter

    def look_again(self, connection: "Connection") -> None:
        """There may be room now."""
        if self._waiter is not None and self.bytes_for(connection):
            self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


__all__ = ["CATCHING_UP", "Room"]
