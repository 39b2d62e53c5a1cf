"""Gateways that take runs, over the real core and one store in memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, cast

from aiohttp import web

from gateway.adapters.http.errors import border
from gateway.adapters.http.parts import Access
from gateway.adapters.http.runs_api import RunsApi
from gateway.adapters.http.server import Listener
from gateway.core.runs.runs import Runs
from gateway.core.runs.tokens import Tokens
from gateway.domain.access.principal import EVERYBODY, Principal
from gateway.domain.streams.segment import SegmentOptions
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.settings import LimitSettings, ServerSettings
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import make_parts


class _Everybody:
    async def authenticate(self, _token: str | None) -> Principal:
        return EVERYBODY

    async def publisher(self, _principal: Principal, session: SessionId) -> SessionRef:
        return SessionRef(Tenant("t"), session)


class ServedRuns:
    """One gateway."""

    def __init__(self, store: FakeRuns, name: str, **settings: Any) -> None:
        rng = random.Random(name)
        self.parts = make_parts(store, name, **settings)
        self.runs = Runs(self.parts)
        self.tokens = Tokens(self.parts, self.runs, rng)
        app = web.Application(middlewares=[border(None, rng)])
        access = cast("Access", _Everybody())
        RunsApi(access, self.runs, self.tokens, LimitSettings(), SegmentOptions(), rng).add_routes(app.router)
        self.listener = Listener(app, ServerSettings(), rng)
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self.port = await self.listener.start("127.0.0.1", 0)

    def close_connections(self) -> None:
        """As if the process died: nothing is answered any more."""
        server = self.listener._runner.server
        for connection in list(server.connections if server is not None else ()):
            if connection.transport is not None:
                connection.transport.abort()

    async def close(self) -> None:
        await self.listener.close(0.2)
        await self.parts.owner.stop(1)


@asynccontextmanager
async def serving_runs(store: FakeRuns, count: int = 1, **settings: Any) -> AsyncIterator[list[ServedRuns]]:
    async with AsyncExitStack() as stack:
        served = [ServedRuns(store, f"gw-{number}", **settings) for number in range(count)]
        for gateway in served:
            await gateway.start()
            stack.push_async_callback(gateway.close)
        yield served


class RawStream:
    """A chunked POST by hand: sends what it is told, when it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int, path: str) -> "AsyncIterator[RawStream]":
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            yield cls(reader, writer)
        finally:
            writer.transport.abort()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def send(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")

    async def answer(self) -> tuple[int, bytes, bytes]:
        """Status, head, body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return int(head.split()[1]), head, await self.reader.readexactly(int(length.split(b":")[1]))

    def abort(self) -> None:
        self.writer.transport.abort()
