"""A proxy that breaks each connection off after some bytes of its response, in the middle of whatever is there."""

import asyncio
import random
import socket
import struct
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

_CARRIED_SECONDS = 20.0


class CuttingProxy:
    """`rng` and `limits` say after how many bytes each link is cut; None: none is. `target` may be changed at any time;
    None: nobody is there."""

    def __init__(self, target_url: str, rng: random.Random | None, limits: tuple[int, int] | None) -> None:
        self.target: str | None = target_url
        self.limits = limits
        self.first_limits: list[int] = []
        """Of the first links, one each, before `limits` count."""
        self.resets = False
        """A cut is a reset. Without it, Node's `fetch` may take what came for the whole response."""
        self.cuts = 0
        self.accepted = 0
        self._carried = 0
        self._has_carried = asyncio.Condition()
        self._rng = rng
        self._links: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut_all(self) -> None:
        for link in list(self._links):
            link.cancel()

    async def carried(self, count: int) -> None:
        """Waits until so many bytes have gone to readers."""
        async with asyncio.timeout(_CARRIED_SECONDS), self._has_carried:
            await self._has_carried.wait_for(lambda: self._carried >= count)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        task.add_done_callback(self._links.discard)
        upstream: asyncio.StreamWriter | None = None
        with suppress(ConnectionError, asyncio.CancelledError):
            if self.target is not None:
                address = urlsplit(self.target)
                source, upstream = await asyncio.open_connection(address.hostname, address.port)
                await self._carry(reader, writer, source, upstream)
        for side in (writer, upstream):
            if side is not None:
                side.transport.abort()

    def _next_limit(self) -> int | None:
        if self.first_limits:
            return self.first_limits.pop(0)
        return None if self.limits is None or self._rng is None else self._rng.randint(*self.limits)

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        source: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> None:
        left = self._next_limit()
        requests = asyncio.create_task(_pump(reader, upstream))
        try:
            while data := await source.read(65_536):
                if left is not None:
                    if len(data) > left:
                        writer.write(data[:left])
                        await writer.drain()
                        self.cuts += 1
                        await asyncio.sleep(0)  # the kernel sends what comes before the cut
                        if self.resets:
                            _reset(writer)
                        writer.close()
                        return
                    left -= len(data)
                writer.write(data)
                await writer.drain()
                async with self._has_carried:
                    self._carried += len(data)
                    self._has_carried.notify_all()
            writer.close()
        finally:
            requests.cancel()
            await asyncio.gather(requests, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


__all__ = ["CuttingProxy"]
