"""A small TCP proxy: round robin over targets, may be cut, and gives each client a line as bad as one likes.

Stands before the gateways (as a load balancer would) and before Valkey (so that "cut Redis" is a button).
Of the traffic it reads no more than the `client=` of request lines and whether the first one is a WebSocket's.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from gateway.app.demo.line import CHUNK_BYTES, Line, carry

_CONNECT_SECONDS = 1.0
_CLIENT_QUERY = re.compile(rb"^[A-Z]+ [^ ]*[?&]client=([A-Za-z0-9_.~-]+)")
_STREAM = re.compile(rb"^[A-Z]+ [^ ?]*/(?:ws|events)\?|^[A-Z]+ [^ ]*[?&]wait=")
_UPGRADE = re.compile(rb"^upgrade: *websocket", re.IGNORECASE | re.MULTILINE)
_REFUSAL = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 24\r\nConnection: close\r\n\r\n"
    b"<p>Blocked by policy</p>"
)
_PERFECT = Line()
_KEPT_LINES = 256
"""Of clients; the one that was changed longest ago goes first."""

Target = tuple[str, int]


@dataclass(eq=False, slots=True)
class _Connection:
    writer: asyncio.StreamWriter
    client: str = ""
    is_stream: bool = False
    """The client reads by it; others carry requests."""
    target: Target | None = None
    up_writer: asyncio.StreamWriter | None = None

    task: asyncio.Task[None] | None = None

    def abort(self) -> None:
        for writer in self._writers():
            writer.transport.abort()

    async def end(self) -> None:
        self.abort()
        for writer in self._writers():
            with suppress(OSError):
                await writer.wait_closed()

    def _writers(self) -> list[asyncio.StreamWriter]:
        return [writer for writer in (self.writer, self.up_writer) if writer is not None]


class Relay:
    """One listening port. `targets()` is asked for each new connection; refusing ones are skipped."""

    def __init__(self, targets: Callable[[], Sequence[Target]]) -> None:
        self._targets = targets
        self._turn = 0
        self._server: asyncio.Server | None = None
        self._connections: dict[_Connection, None] = {}
        self._lines: dict[str, Line] = {}
        self.is_cut = False
        self.connections_total = 0

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("the relay is not started")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, host, port, limit=CHUNK_BYTES)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self.cut()
            await asyncio.gather(*(it.task for it in self._connections if it.task), return_exceptions=True)
            await self._server.wait_closed()

    def cut(self) -> None:
        """Reset every connection and refuse new ones until `heal`."""
        self.is_cut = True
        for connection in self._connections:
            connection.abort()

    def heal(self) -> None:
        self.is_cut = False

    def put_on_line(self, client: str, line: Line) -> None:
        """For that client from now on, also on connections that it has. One that may no longer be is reset."""
        self._lines.pop(client, None)
        self._lines[client] = line
        for oldest in list(self._lines)[:-_KEPT_LINES]:
            del self._lines[oldest]
        if not line.takes_upgrades:
            for connection in self._connections:
                if connection.client == client:
                    connection.abort()

    def targets_by_client(self) -> dict[str, Target]:
        """Where each client that is known by its id reads; of several connections the newest counts."""
        return {it.client: it.target for it in self._connections if it.is_stream and it.target is not None}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(writer, task=asyncio.current_task())
        self._connections[connection] = None
        self.connections_total += 1
        try:
            up_reader = None if self.is_cut else await self._connect(connection)
            if up_reader is not None:
                await self._pipe_both(connection, reader, up_reader)
        except (ConnectionError, TimeoutError):
            pass  # either side left; the other is aborted below
        finally:
            del self._connections[connection]
            await connection.end()

    async def _connect(self, connection: _Connection) -> asyncio.StreamReader | None:
        targets = list(self._targets())
        for _ in targets:
            self._turn += 1
            target = targets[self._turn % len(targets)]
            with suppress(OSError, TimeoutError):
                opening = asyncio.open_connection(*target, limit=CHUNK_BYTES)
                reader, connection.up_writer = await asyncio.wait_for(opening, _CONNECT_SECONDS)
                connection.target = target
                return reader
        return None

    async def _pipe_both(
        self, connection: _Connection, reader: asyncio.StreamReader, up_reader: asyncio.StreamReader
    ) -> None:
        def line() -> Line:
            return self._lines.get(connection.client, _PERFECT)

        def note(data: bytes) -> None:
            """A connection that is kept alive may serve another client's request next."""
            if found := _CLIENT_QUERY.match(data):
                connection.client = found[1].decode()
                connection.is_stream = _STREAM.match(data) is not None

        writer, up_writer = connection.writer, connection.up_writer
        if up_writer is None:
            return
        first = await reader.read(CHUNK_BYTES)
        note(first)
        if not line().takes_upgrades and _UPGRADE.search(first):
            writer.write(_REFUSAL)
            await writer.drain()
            writer.write_eof()
            await reader.read()  # until the client has it
            return
        async with asyncio.TaskGroup() as both:
            both.create_task(carry(reader, up_writer, line, first=first, seen=note))
            both.create_task(carry(up_reader, writer, line))


__all__ = ["Relay", "Target"]
