"""The raw input of one run as its publisher holds it: read from any offset that a gateway may name. Bounded.

Bytes before an offset that is in the log may be dropped; whoever adds waits while too much is held.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

CHUNK_BYTES = 64 * 1024
"""Of one part when what gathered is read again."""


class InputGone(Exception):
    """That offset is no longer held."""


class KeptInput:
    """One writer, one reader at a time."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._chunks: deque[bytes] = deque()
        self.first = 0
        """Offset of the oldest byte that is held."""
        self.end = 0
        """Of the byte after the newest one."""
        self.is_closed = False
        self._changed = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self.end - self.first >= self._max_bytes

    def add(self, data: bytes) -> None:
        if data:
            self._chunks.append(data)
            self.end += len(data)
            self._tell()

    def close(self) -> None:
        """No more will come."""
        self.is_closed = True
        self._tell()

    def drop_until(self, offset: int) -> None:
        """Everything before is in the log."""
        while self._chunks and self.first + len(self._chunks[0]) <= offset:
            self.first += len(self._chunks.popleft())
        self._tell()

    async def changed(self) -> None:
        """Until something was added or dropped, or it was closed."""
        self._changed.clear()
        await self._changed.wait()

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
        """Whole chunks, but for the first one."""
        parts, size, place = [], 0, self.first
        for chunk in self._chunks:
            if place + len(chunk) > offset:
                part = chunk[max(0, offset - place) :]
                parts.append(part)
                size += len(part)
                if size >= CHUNK_BYTES:
                    break
            place += len(chunk)
        return b"".join(parts)

    def _tell(self) -> None:
        self._changed.set()


__all__ = ["InputGone", "KeptInput"]
