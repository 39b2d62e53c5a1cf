"""The raw input of one run as its producer holds it: read from any offset that a gateway may name. Bounded.

Bytes before an offset that is in the log may be dropped; whoever adds waits while too much is held.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

BLOCK_BYTES = 64 * 1024
"""Small chunks are put together to blocks: a token of five bytes must not cost fifty."""


class InputGone(Exception):
    """That offset is no longer held."""


class KeptInput:
    """One reader at a time."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._blocks: deque[bytearray] = deque()
        self.first = 0
        """Offset of the oldest byte that is held."""
        self.end = 0
        """Of the byte after the newest one."""
        self.line_end = 0
        """Of the byte after the last line break."""
        self.is_closed = False
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self.end - self.first >= self._max_bytes

    def add(self, data: bytes) -> None:
        if not data:
            return
        if not self._blocks or len(self._blocks[-1]) + len(data) > BLOCK_BYTES:
            self._blocks.append(bytearray())
        self._blocks[-1] += data
        if (found := data.rfind(b"\n")) >= 0:
            self.line_end = self.end + found + 1
        self.end += len(data)
        self.tell()

    def close(self) -> None:
        """No more will come."""
        self.is_closed = True
        self.tell()

    def drop_until(self, offset: int) -> None:
        """Everything before is in the log. Whole blocks only."""
        while self._blocks and self.first + len(self._blocks[0]) <= offset:
            self.first += len(self._blocks.popleft())
        self.tell()

    async def changed(self) -> None:
        """Until something was added or dropped, it was closed, or `tell` was called."""
        self._changed.clear()
        await self._changed.wait()

    def tell(self) -> None:
        self._changed.set()

    async def read_from(self, offset: int) -> AsyncIterator[bytes]:
        """To the end, as it comes. Raises InputGone."""
        yield b""  # aiohttp sends a head with the first part of a body: the run begins now, not with its first token
        while True:
            if offset < self.first:
                raise InputGone(f"the input before {self.first} is no longer held, {offset} was asked for")
            if offset < self.end:
                data = self._part(offset)
                offset += len(data)
                yield data
            elif self.is_closed:
                return
            else:
                await self.changed()

    def _part(self, offset: int) -> bytes:
        """At most one block."""
        place = self.first
        for block in self._blocks:
            if place + len(block) > offset:
                return bytes(block[offset - place :])
            place += len(block)
        raise InputGone(f"there is no input at {offset}")


__all__ = ["BLOCK_BYTES", "InputGone", "KeptInput"]
