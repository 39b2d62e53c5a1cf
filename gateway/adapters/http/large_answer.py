"""An answer that may be a megabyte, to a client that may not read: it is taken within its time, or given up (G7).

Must never keep its bytes for a peer whose kernel answers while nobody reads. Made by the messages endpoint.
"""

import asyncio
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

LEAST_SECONDS: Final = 30.0
"""Any answer has so long, whatever its size."""
LEAST_BYTES_PER_SECOND: Final = 16 * 1024
"""And as much longer as this pace needs: who is slower had better ask for fewer messages at once."""


class LargeAnswer(web.Response):
    """Its connection is cut when most of it was not taken in time: aiohttp itself would wait for ever."""

    _transport: asyncio.Transport | None = None
    _size_bytes = 0

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self._transport = request.transport
        self._size_bytes = len(self.body) if isinstance(self.body, bytes) else 0
        return await super().prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:
        """Raises ConnectionError when the client has gone, or was cut."""
        try:
            async with asyncio.timeout(LEAST_SECONDS + self._size_bytes / LEAST_BYTES_PER_SECOND):
                await super().write_eof(data)
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()
            raise ConnectionResetError("the answer was not read") from None


__all__ = ["LEAST_BYTES_PER_SECOND", "LEAST_SECONDS", "LargeAnswer"]
