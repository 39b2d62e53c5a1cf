"""Bytes of a file descriptor as they arrive: pipes, terminals, sockets, files; waits for no line and no full buffer."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator


class ByteSource:
    """Reads one descriptor once. Its flags stay as they are: a terminal is shared with whoever started us."""

    def __init__(self, fd: int, chunk_bytes: int = 16 * 1024) -> None:
        self._fd = fd
        self._chunk_bytes = chunk_bytes
        self._waiter: asyncio.Future[None] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """End `chunks` although more may come."""
        self._is_stopped = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def chunks(self) -> AsyncIterator[bytes]:
        """What each read gives, to the end of the input. Raises OSError; InterruptedError after `stop`."""
        while True:
            if not self._is_stopped:
                await self._until_readable()
            if self._is_stopped:
                raise InterruptedError(errno.EINTR, "stopped by a signal")
            try:
                data = os.read(self._fd, self._chunk_bytes)
            except BlockingIOError:
                continue
            if not data:
                return
            yield data

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        try:
            loop.add_reader(self._fd, _wake, waiter)
        except PermissionError:
            await asyncio.sleep(0)  # a plain file, or /dev/null: always readable
            return
        try:
            await waiter
        finally:
            loop.remove_reader(self._fd)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


__all__ = ["ByteSource"]
