"""A TCP proxy between clients and one gateway: cuts, silence, slowness, and a middlebox that refuses some requests.

Every byte that it does pass is the gateway's or the client's own. Lives in the loop of who uses it.
"""

import asyncio
from contextlib import suppress
from typing import Final

from sdk.conformance.http_wire import html_reply

READ_BYTES: Final = 16 * 1024
_BLOCKS: Final = {"websocket": (b"upgrade: websocket", 403), "sse": (b"/events", 502), "poll": (b"/messages", 502)}


class _Pair:
    """One connection of a client, and the one to the gateway that stands for it."""

    def __init__(self, link: "Link", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._link = link
        self._reader = reader
        self._writer = writer
        self._upstream: asyncio.StreamWriter | None = None
        self.is_swallowed = False
        """What comes is taken and goes nowhere, in both directions."""

    async def run(self) -> None:
        try:
            reader, self._upstream = await asyncio.open_connection(*self._link.target)
        except OSError:
            self.reset()
            return
        ways = [
            asyncio.create_task(self._pump(self._reader, self._upstream, is_from_client=True)),
            asyncio.create_task(self._pump(reader, self._writer, is_from_client=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_from_client: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(READ_BYTES):
                if self.is_swallowed:
                    continue
                if is_from_client and (status := self._link.status_instead(data)):
                    self._writer.write(html_reply(status).encode())
                    await self._writer.drain()
                    return
                if self._link.bytes_per_second:
                    await asyncio.sleep(len(data) / self._link.bytes_per_second)
                writer.write(data)
                await writer.drain()
            if self.is_swallowed:
                await asyncio.Event().wait()  # not even the end gets through

    def close(self) -> None:
        for writer in (self._writer, self._upstream):
            if writer is not None:
                with suppress(OSError, RuntimeError):
                    writer.close()

    def reset(self) -> None:
        for writer in (self._writer, self._upstream):
            if writer is not None:
                writer.transport.abort()


class Link:
    """`await start()`, `url`, `await stop()`."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.blocked: set[str] = set()
        """Of `websocket`, `sse`, `poll`: answered with a page of the middlebox."""
        self.bytes_per_second = 0.0
        self.connections = 0
        self.pages = 0
        """How many requests were answered in the gateway's place."""
        self._pairs: dict[_Pair, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        pair = _Pair(self, reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._pairs[pair] = task
        try:
            await pair.run()
        except asyncio.CancelledError:
            pair.reset()
        finally:
            self._pairs.pop(pair, None)

    def status_instead(self, data: bytes) -> int | None:
        if not self.blocked or data[:4] != b"GET ":
            return None
        head = data.partition(b"\r\n\r\n")[0].lower()
        for name in self.blocked:
            mark, status = _BLOCKS[name]
            if mark in head:
                self.pages += 1
                return status
        return None

    def cut(self) -> int:
        """Reset what is open; new connections are let in. Returns how many there were."""
        for pair in list(self._pairs):
            pair.reset()
        return len(self._pairs)

    def swallow(self) -> int:
        """What is open falls silent and never ends; new connections work. Returns how many there were."""
        for pair in self._pairs:
            pair.is_swallowed = True
        return len(self._pairs)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._pairs.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


__all__ = ["Link"]
