"""Whose turn it is to connect: at most so many at once, and who comes back goes before who is new (protocol.md 1).

A client that was cut is in the middle of a text; a new one has seen nothing yet. Called by core.door.
"""

import asyncio
from collections import deque

from gateway.domain.wire.errors import ErrorCode, RelayError

WAIT_SECONDS = 5.0
"""How long a connect may wait for its turn; then it is better off elsewhere."""


class Turns:
    """First come, first served, in two queues."""

    __slots__ = ("_free", "_new", "_returning", "_wait_seconds")

    def __init__(self, count: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self._free = count
        self._returning: deque[asyncio.Future[None]] = deque()
        self._new: deque[asyncio.Future[None]] = deque()
        self._wait_seconds = wait_seconds

    @property
    def waiting(self) -> int:
        return len(self._returning) + len(self._new)

    async def take(self, *, is_return: bool) -> None:
        """One `give_back` follows. RelayError BUSY when it does not come in time; no timer while there is no queue."""
        if self._free > 0:
            self._free -= 1
            return
        queue = self._returning if is_return else self._new
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():
                self.give_back()  # it came in the same moment
            elif turn in queue:
                queue.remove(turn)
            if isinstance(exc, TimeoutError):
                raise RelayError(ErrorCode.BUSY, "too many clients are connecting, try again") from None
            raise

    def give_back(self) -> None:
        """The next one's turn, or a free one."""
        for queue in (self._returning, self._new):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
                # Its owner was cancelled just now; it finds itself gone.
        self._free += 1


__all__ = ["WAIT_SECONDS", "Turns"]
