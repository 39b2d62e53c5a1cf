"""A TCP proxy in front of a gateway that is far away: every byte is late by so long, in both directions, in order.

Lives in the test's own loop. A change of the delay holds for what is read from then on.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

READ_BYTES: Final = 16 * 1024
CHUNKS: Final = 64
"""On the way in one direction; what does not fit waits at its sender."""


class SlowLink:
    """Listens on a free port of loopback. `one_way_seconds`: half of the round trip that it adds."""

    def __init__(self, host: str, port: int, one_way_seconds: float) -> None:
        self.one_way_seconds = one_way_seconds
        self.listen: Callable[[], Callable[[bytes], None]] = lambda: _ignore
        """Asked for each connection: who hears everything that the gateway sends on it."""
        self._target = host, port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """All connections are reset, and what is on its way is lost, in the middle of a frame."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writers = [writer]
        # Python 3.11's server reports a cancelled handler as a fault: at the end of the link it just returns.
        with suppress(asyncio.CancelledError):
            try:
                target_reader, target_writer = await asyncio.open_connection(*self._target)
                writers.append(target_writer)
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(self._way(reader, target_writer, _ignore))
                    ways.create_task(self._way(target_reader, writer, self.listen()))
            except* OSError:
                pass  # one side is gone: so is the other
            finally:
                for one in writers:
                    one.transport.abort()

    async def _way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hear: Callable[[bytes], None]
    ) -> None:
        """Until its source ends, and everything of it has arrived."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._read(reader, chunks, hear))
            both.create_task(self._deliver(chunks, writer))

    async def _read(
        self,
        reader: asyncio.StreamReader,
        chunks: "asyncio.Queue[tuple[float, bytes]]",
        hear: Callable[[bytes], None],
    ) -> None:
        clock = asyncio.get_running_loop().time
        data = b"."
        while data:
            data = await reader.read(READ_BYTES)
            hear(data)
            await chunks.put((clock() + self.one_way_seconds, data))

    async def _deliver(self, chunks: "asyncio.Queue[tuple[float, bytes]]", writer: asyncio.StreamWriter) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            due, data = await chunks.get()
            await asyncio.sleep(max(0.0, due - clock()))
            if not data:
                with suppress(OSError):
                    writer.write_eof()
                return
            writer.write(data)
            await writer.drain()


def _ignore(_data: bytes) -> None:
    pass


__all__ = ["SlowLink"]
