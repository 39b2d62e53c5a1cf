"""Notices a gateway that takes a stream's bytes and does nothing with them: frozen, or cut off from Redis.

A gateway that lives renews the lease of a run whose stream it has, long before half of it is over; any other gateway
tells how much is left. Nothing else is a sign: input may be silent, and much input makes no message.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from relayrouter.producer_http import Reply


class LeaseWatch:
    """Of one run. `run` until it is cancelled, beside the requests."""

    def __init__(self, look: Callable[[], Awaitable[Reply]], every_seconds: float) -> None:
        """`look` asks a gateway, best another one, for the run's state."""
        self._look = look
        self._every_seconds = every_seconds
        self._open: asyncio.Timeout | None = None

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Around a stream's request; ends it by TimeoutError when its gateway does not renew the lease."""
        try:
            async with asyncio.timeout(None) as opened:
                self._open = opened
                yield
        finally:
            self._open = None

    async def run(self) -> None:
        longest_ms = 0
        while True:
            await asyncio.sleep(self._every_seconds)
            reply = await self._look()
            lease_ms = reply.body.get("lease_ms")
            if reply.status != 200 or not isinstance(lease_ms, int) or reply.body.get("state") != "open":
                continue
            longest_ms = max(longest_ms, lease_ms)
            if 2 * lease_ms < longest_ms and self._open is not None:
                ending, self._open = self._open, None
                ending.reschedule(asyncio.get_running_loop().time())


__all__ = ["LeaseWatch"]
