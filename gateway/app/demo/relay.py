"""A small TCP proxy: round robin over targets, may be cut, may slow one client down.

Stands before the gateways (as a load balancer would) and before Valkey (so that "cut Redis" is a button).
Never looks into the traffic, but for the `client=` of a request line when it is told to slow a client.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

_CHUNK_BYTES = 16 * 1024
_CONNECT_SECONDS = 1.0
_CLIENT_QUERY = re.compile(rb"[?&]client=([A-Za-z0-9_.~-]+)")

Target = tuple[str, int]


class Relay:
    """One listening port. `targets()` is asked for each new connection; refusing ones are skipped."""

    def __init__(self, targets: Callable[[], Sequence[Target]]) -> None:
        self._targets = targets
        self._turn = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._rates: dict[str, int] = {}
        self.is_cut = False
        self.connections_total = 0

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the relay is not started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, host, port, limit=_CHUNK_BYTES)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self.cut()
            await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection and refuse new ones until `heal`."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def heal(self) -> None:
        self.is_cut = False

    def slow(self, client: str, bytes_per_second: int | None) -> None:
        """Limit what reaches that client from now on; None lifts the limit."""
        if bytes_per_second is None:
            self._rates.pop(client, None)
        else:
            self._rates[client] = bytes_per_second

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections_total += 1
        try:
            upstream = None if self.is_cut else await self._connect()
            if upstream is None:
                return
            up_reader, up_writer = upstream
            self._writers.add(up_writer)
            try:
                await self._pipe_both(reader, writer, up_reader, up_writer)
            finally:
                self._writers.discard(up_writer)
                up_writer.transport.abort()
        except (ConnectionError, TimeoutError):
            pass  # either side left; the other is aborted below
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        targets = list(self._targets())
        for _ in targets:
            self._turn += 1
            host, port = targets[self._turn % len(targets)]
            with suppress(OSError, TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection(host, port, limit=_CHUNK_BYTES), _CONNECT_SECONDS)
        return None

    async def _pipe_both(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> None:
        first = await reader.read(_CHUNK_BYTES)
        found = _CLIENT_QUERY.search(first.split(b"\r\n", 1)[0])
        client = found[1].decode() if found else ""
        up_writer.write(first)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pipe(reader, up_writer, ""))
            both.create_task(self._pipe(up_reader, writer, client))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str) -> None:
        """Until one side ends; a cut is an end like any other."""
        with suppress(ConnectionError):
            while data := await reader.read(self._chunk_bytes(client)):
                writer.write(data)
                await writer.drain()
                rate = self._rates.get(client)
                if rate:
                    await asyncio.sleep(len(data) / rate)
        if not writer.transport.is_closing():
            writer.write_eof()

    def _chunk_bytes(self, client: str) -> int:
        rate = self._rates.get(client)
        return max(64, min(_CHUNK_BYTES, rate // 10)) if rate else _CHUNK_BYTES
