"""A whole gateway over a real server, and clients of its WebSocket endpoint."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import jwt
import pytest

from gateway.app.compose import Gateway
from gateway.settings import Settings
from tests.integration.resp.servers import Server

SECRET = "x" * 32
JWT = {"mode": "jwt", "keys": [{"kid": "k1", "algorithm": "HS256", "secret": SECRET}], "leeway_seconds": 0}


class World:
    """A gateway, its URL and a client of it."""

    def __init__(self, gateway: Gateway, port: int, http: aiohttp.ClientSession) -> None:
        self.gateway = gateway
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = http

    async def push(self, session: str, *texts: str, headers: Any = None) -> dict[str, Any]:
        messages = [{"payload": {"kind": "delta", "run": "r1", "text": text}} for text in texts]
        url = f"{self.url}/v1/sessions/{session}/push"
        async with self.http.post(url, json={"messages": messages}, headers=headers) as response:
            body: dict[str, Any] = await response.json()
            assert response.status == 200, body
            return body

    @asynccontextmanager
    async def connect(self, path: str, **options: Any) -> AsyncIterator["Socket"]:
        options.setdefault("autoping", False)
        async with self.http.ws_connect(self.url + path, max_msg_size=0, **options) as ws:
            yield Socket(ws)

    async def refused(self, path: str, **options: Any) -> int:
        """Status of a connect that must fail before the upgrade."""
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await self.http.ws_connect(self.url + path, **options)
        return caught.value.status

    async def ask(self, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        """The same URL without an Upgrade header."""
        async with self.http.get(self.url + path, **options) as response:
            return response.status, await response.json()

    async def is_empty(self) -> bool:
        """Every place was given back. Waits a little for ends that are under way."""
        for _ in range(200):
            if not self.gateway.hub.connections and not self.gateway.hub.sessions:
                return True
            await asyncio.sleep(0.01)  # it ends on another side of a real socket
        return False


class Socket:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def frame(self) -> dict[str, Any]:
        message = await self.ws.receive(timeout=5)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        frame: dict[str, Any] = json.loads(message.data)
        return frame

    async def control(self, kind: str) -> dict[str, Any]:
        """The next control frame, which must be of this kind."""
        frame = await self.frame()
        assert (frame["type"], frame["payload"]["kind"]) == ("control", kind), frame
        payload: dict[str, Any] = frame["payload"]
        return payload

    async def texts(self, upto: int) -> str:
        """Text frames until this seq; each must follow."""
        text, seq = "", None
        while seq != upto:
            frame = await self.frame()
            assert frame["type"] == "text", frame
            first = frame.get("first_seq", frame["seq"])
            assert seq is None or first == seq + 1
            seq = frame["seq"]
            text += frame["payload"]["text"]
        return text

    async def send(self, kind: str, **fields: Any) -> None:
        await self.ws.send_json({"type": "control", "payload": {"kind": kind, **fields}})

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the close; what comes before it is skipped."""
        while True:
            message = await self.ws.receive(timeout=10)
            if message.type is aiohttp.WSMsgType.CLOSE:
                return message.data, message.extra or ""
            assert message.type not in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR), message


@asynccontextmanager
async def serving(valkey: Server, **topics: Any) -> AsyncIterator[World]:
    valkey.admin.flushall()
    incidents: list[str] = []
    settings = Settings.model_validate(
        {
            "auth": {"mode": "none"},
            **topics,
            "server": {"port": 0, "admin_port": 0, **topics.get("server", {})},
            "redis": {"url": f"redis://127.0.0.1:{valkey.port}/0"},
        }
    )
    gateway = Gateway(settings, incidents.append)
    port, _ = await gateway.start()
    try:
        await asyncio.wait_for(gateway.subscribed(), 5)
        async with aiohttp.ClientSession() as http:
            yield World(gateway, port, http)
        assert await World(gateway, port, http).is_empty()
        assert gateway._gate.places_taken == 0
    finally:
        await gateway.stop()
    assert not incidents


def token(user: str = "u1", *, seconds: float = 60, **claims: Any) -> str:
    now = time.time()
    content = {"sub": user, "iat": int(now), "exp": now + seconds, "scope": "subscribe publish", "sessions": ["*"]}
    return jwt.encode({**content, **claims}, SECRET, "HS256", headers={"kid": "k1"})


def bearer(user: str = "u1", **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(user, **claims)}"}
