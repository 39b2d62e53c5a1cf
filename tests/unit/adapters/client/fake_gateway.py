"""A server that follows a script: what a real gateway does only in its worst moments (silence, odd closes)."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

Scene = Callable[[web.WebSocketResponse, "FakeGateway"], Awaitable[None]]
"""One WebSocket connection, from its upgrade to its end."""


@dataclass
class FakeGateway:
    """`scenes` are played one a connection, the last one for ever. `upgrade_statuses` refuse the first upgrades."""

    scenes: list[Scene] = field(default_factory=list)
    upgrade_statuses: list[int] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """Payloads of the control frames that the client sent."""
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade") is None:
            return web.json_response({"error": {"code": "x", "message": "the reason in words"}}, status=403)
        self.queries.append(dict(request.query))
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.upgrade_statuses:
            return web.Response(status=self.upgrade_statuses.pop(0), headers={"Retry-After": "0"})
        ws = web.WebSocketResponse(protocols=("relayrouter.v1",), timeout=0.2)
        await ws.prepare(request)
        scene = self.scenes.pop(0) if len(self.scenes) > 1 else self.scenes[0]
        await scene(ws, self)
        return ws

    async def hear(self, ws: web.WebSocketResponse) -> dict[str, Any] | None:
        """The next control payload of the client; None when it left."""
        message = await ws.receive()
        if message.type is not WSMsgType.TEXT:
            return None
        payload: dict[str, Any] = json.loads(message.data)["payload"]
        self.sent.append(payload)
        return payload

    async def hear_all(self, ws: web.WebSocketResponse) -> None:
        while await self.hear(ws) is not None:
            pass


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def fake_gateway(*scenes: Scene, upgrade_statuses: list[int] | None = None) -> AsyncIterator[FakeGateway]:
    gateway = FakeGateway(list(scenes), upgrade_statuses or [])
    async with serving(web.get("/v1/sessions/{session}/ws", gateway.handle)) as url:
        gateway.url = url
        yield gateway


def saying(*frames: str, code: int | None = None, reason: str = "") -> Scene:
    """Send these frames, then close with `code`, or listen until the client leaves."""

    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        for frame in frames:
            await ws.send_str(frame)
        if code is not None:
            await ws.close(code=code, message=reason.encode())
        await gateway.hear_all(ws)

    return scene


def cut_after(*frames: str) -> Scene:
    """Send these frames, then break the connection without a close frame."""

    async def scene(ws: web.WebSocketResponse, _gateway: FakeGateway) -> None:
        for frame in frames:
            await ws.send_str(frame)
        transport = ws._req.transport if ws._req is not None else None
        if transport is not None:
            transport.close()

    return scene
