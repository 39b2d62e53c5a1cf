"""One waiter at a time, woken by somebody else: cheaper than an event, and asked whether anybody waits."""

import asyncio


class Gate:
    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        return self._waiter is not None

    async def wait(self) -> None:
        """Until the next `wake`."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        """Whoever waits goes on; nobody does: nothing is remembered."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


__all__ = ["Gate"]
