"""A webhook receiver that can be down: checks every signature, drops repeats by id."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from gateway.adapters.webhook.signature import is_signed
from loadtest.processes import free_port


@dataclass
class Receiver:
    secret: bytes = b"s" * 32
    port: int = 0
    status: int = 200
    requests: list[tuple[str, bool]] = field(default_factory=list)
    """Item id, and whether the signature held."""
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    def reserve(self) -> int:
        self.port = free_port()
        return self.port

    @property
    def ids(self) -> list[str]:
        return list(dict.fromkeys(ident for ident, _ in self.requests))

    @property
    def all_signed(self) -> bool:
        return all(is_good for _, is_good in self.requests)

    async def wait_for(self, count: int, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while len(self.ids) < count:
                self._came.clear()
                await self._came.wait()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/hook", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        stamp, given = request.headers["RelayRouter-Timestamp"], request.headers["RelayRouter-Signature"]
        item = json.loads(body)
        assert item["id"] == request.headers["RelayRouter-Id"]
        self.requests.append((item["id"], is_signed(self.secret, stamp, body, given, time.time())))
        self._came.set()
        return web.Response(status=self.status)
