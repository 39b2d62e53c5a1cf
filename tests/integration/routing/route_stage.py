"""One gateway whose route table changes while it runs, and a webhook receiver that does what a test wants."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from loadtest.processes import Gateway, free_port
from loadtest.stage import Stage
from tests.integration.agent.api import ack, call, get, take


@dataclass
class Posts:
    """What a webhook receiver got, in order; `status` is what it answers, after `is_open`."""

    port: int = field(default_factory=free_port)
    status: int = 200
    items: list[dict[str, Any]] = field(default_factory=list)
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    _came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def kinds(self) -> list[str]:
        return [item["payload"]["kind"] for item in self.items]

    async def wait_for(self, count: int, seconds: float = 20) -> None:
        async with asyncio.timeout(seconds), self._came:
            await self._came.wait_for(lambda: len(self.items) >= count)

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
            self.is_open.set()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        item = json.loads(await request.read())
        async with self._came:
            self.items.append(item)
            self._came.notify_all()
        await self.is_open.wait()
        return web.Response(status=self.status)


@dataclass
class Routed:
    """`use` changes the table of the running gateways and returns when it is in force."""

    gateways: list[Gateway]
    path: Path
    posts: Posts
    version: int = 0

    @property
    def gateway(self) -> Gateway:
        return self.gateways[0]

    async def use(self, routes: str, more: str = "") -> str:
        """`routes`: rows in YAML, flow style. Swapped like an editor that renames. Returns the version's name."""
        self.version += 1
        name = f"v{self.version}"
        write(self.path, f"version: {name}\nroutes: {{{routes}}}\n{more}")
        for gateway in self.gateways:
            await until(gateway, lambda said: said["current"]["version"] == name)
        return name

    async def push(self, session: str, payload: dict[str, Any], kind_of: str = "text", **fields: Any) -> dict[str, Any]:
        body = {"type": kind_of, "payload": payload, **fields}
        return dict(await get(self.gateway, "POST", f"/v1/sessions/{session}/push", body))

    async def input(self, session: str, kind: str, seq: int = 1) -> None:
        body = {"client": "phone", "seq": seq, "payload": {"kind": kind, "text": "x"}}
        await get(self.gateway, "POST", f"/v1/sessions/{session}/input", body)

    async def dead(self, session: str, count: int = 1, seconds: float = 20) -> list[tuple[str, str]]:
        """Kinds and reasons of so many dead letters of the session, when they are there."""
        deadline = time.monotonic() + seconds
        while True:
            items = (await get(self.gateway, "GET", "/v1/inbox/dead"))["items"]
            found = [(it["item"]["payload"]["kind"], it["reason"]) for it in items if it["item"]["session"] == session]
            if len(found) >= count:
                return found
            assert time.monotonic() < deadline, items
            await asyncio.sleep(0.05)

    async def queued(self) -> dict[str, Any]:
        """The next item of the queue, acknowledged."""
        (found,) = await take(self.gateway, wait=20)
        await ack(self.gateway, [found])
        return dict(found["item"])

    async def reset(self) -> None:
        """For the next test: the shipped table, a receiver that takes everything, nothing known of before."""
        self.posts.status = 200
        self.posts.is_open.set()
        self.posts.items.clear()
        await self.use("")

    async def history(self, session: str) -> list[str]:
        answer = await call(self.gateway, "GET", f"/v1/sessions/{session}/messages?from=start")
        if answer.status == 404:
            return []
        return [frame["payload"]["kind"] for frame in answer.json()["frames"] if frame["type"] == "text"]


def write(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


async def report(gateway: Gateway) -> dict[str, Any]:
    answer = await gateway.admin("/admin/routes")
    assert 200 == answer.status, answer.body
    return dict(answer.json())


async def until_in_force(gateway: Gateway, label: str, seconds: float = 20) -> dict[str, Any]:
    return await until(gateway, lambda said: bool(said["in_force"] == label), seconds)


async def until(gateway: Gateway, wanted: Any, seconds: float = 20) -> dict[str, Any]:
    """What `/admin/routes` says as soon as it is `wanted`."""
    deadline = time.monotonic() + seconds
    while not wanted(said := await report(gateway)):
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.05)
    return said


@asynccontextmanager
async def routed(stage: Stage, *, gateways: int = 1, **settings: str) -> AsyncIterator[Routed]:
    posts = Posts()
    path = stage.folder / f"routes-{posts.port}.yaml"
    write(path, "version: v0\nroutes: {}\n")
    hook = {"name": "h", "url": f"http://127.0.0.1:{posts.port}/hook", "secret": "s" * 32, "allow_private": True}
    environ = {
        "webhooks__receivers": json.dumps([hook]),
        "webhooks__parallel": "1",
        "routing__file": os.fspath(path),
        "routing__poll_seconds": "0.05",
        "drain__window_seconds": "0.2",
        **settings,
    }
    started = await stage.start_gateways(gateways, stage.server().url, **environ)
    async with posts.listening():
        yield Routed(started, path, posts)


async def read_until(ws: aiohttp.ClientWebSocketResponse, kind: str, seconds: float = 20) -> list[dict[str, Any]]:
    frames = []
    async with asyncio.timeout(seconds):
        async for message in ws:
            frames.append(json.loads(message.data))
            if frames[-1]["payload"].get("kind") == kind:
                return frames
    raise AssertionError(f"no {kind} among {frames}")
