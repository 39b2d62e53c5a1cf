"""Is the other side still there? A time-out that does not blame the server for a pause of our own."""

import asyncio
from typing import Any, Final

from gateway.adapters.resp.connection import Connection

LATE_SECONDS: Final = 0.1
"""A timer that fires later than this tells that our own loop stood still (SIGSTOP, a long pause): what came in
meanwhile is not read yet, and nobody may be judged by it."""
_SECOND_LOOK_SECONDS: Final = 0.1


async def is_answered(connection: Connection, future: "asyncio.Future[Any]", timeout_seconds: float) -> bool:
    """False when the connection brought nothing at all for `timeout_seconds` while `future` was open."""
    loop = asyncio.get_running_loop()
    while True:
        reads = connection.reads
        due = loop.time() + timeout_seconds
        await asyncio.wait((future,), timeout=timeout_seconds)
        if future.done():
            return True
        if loop.time() - due > LATE_SECONDS:
            await asyncio.wait((future,), timeout=_SECOND_LOOK_SECONDS)
        if connection.reads == reads:
            return future.done()


__all__ = ["LATE_SECONDS", "is_answered"]
