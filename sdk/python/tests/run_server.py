"""Gateways that take runs, as small as their protocol allows: one log, any number of URLs, and faults on demand."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from relayrouter import ProducerTiming, Publisher

QUICK = ProducerTiming(
    request_timeout=2.0, backoff_base=0.005, backoff_max=0.02, give_up_after=10.0, leave_timeout=5.0, settle_after=0.1,
    look_every=0.005,
)  # fmt: skip
"""Waits that a test need not wait for."""

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


@dataclass
class RunServer:
    """`faults`: one a request of any kind, before it; an answer stands for it, None lets it pass."""

    raw: bytearray = field(default_factory=bytearray)
    """The run's input in the log."""
    epoch: int | None = None
    """None: there is no run."""
    end: dict[str, Any] | None = None
    may_log: asyncio.Event = field(default_factory=asyncio.Event)
    """Not set: bytes are read and not logged."""
    break_at: int | None = None
    """The connection that brings this byte is broken, once."""
    faults: list[Fault] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    """Of single requests."""
    lease_ms: int = 29_000
    news: asyncio.Event = field(default_factory=asyncio.Event)
    urls: list[str] = field(default_factory=list)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Of an ndjson input, but for its end."""
        found = [json.loads(line) for line in bytes(self.raw).splitlines()]
        return [line for line in found if "event" not in line]

    @property
    def text(self) -> str:
        return "".join(line.get("text", "") for line in self.lines)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def stop(self, reason: str, **fields: Any) -> None:
        """Somebody else ends the run."""
        self.end = {"reason": reason, **fields}
        self._stopping.set()

    # ---- requests ----------------------------------------------------------------------------------------------

    async def handle(self, request: web.Request) -> web.StreamResponse:
        what = request.match_info.get("what", "")
        self.asked.append(what or request.method)
        self.queries.append(dict(request.query))
        self.tokens.append(request.headers.get("Authorization", ""))
        self.news.set()
        if self.faults and (answer := await self.faults.pop(0)(request)) is not None:
            return answer
        if what == "stream":
            return await self._stream(request)
        if request.method == "POST":
            self.bodies.append(await request.json())
        if self.epoch is None:
            return error(404, "not_found")
        if what == "":
            return web.json_response({"offset": len(self.raw), "state": "open", "lease_ms": self.lease_ms})
        if self.end is not None:
            return error(409, "fenced", reason="run_ended", end=self.end)
        if what == "attach":
            self.epoch += 1
            self.lease_ms = 29_000
            return web.json_response({"epoch": self.epoch, "offset": len(self.raw)})
        self.end = {"reason": self.bodies[-1]["reason"] if what == "end" else "cancelled"}
        return web.json_response(self.end if what == "end" else {"end": self.end, "seq": 7})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        epoch = request.query.get("epoch")
        if self.end is not None:
            return error(409, "fenced", reason="run_ended", end=self.end)
        if epoch is None:
            if self.epoch is not None:
                return error(409, "conflict", reason="run_open")
            self.epoch = 1
        elif int(epoch) != self.epoch:
            return error(409, "fenced", reason="epoch")
        place = int(request.query.get("offset", "0"))
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            while True:
                reading = asyncio.ensure_future(request.content.readany())
                reading.add_done_callback(lambda done: done.cancelled() or done.exception())
                await asyncio.wait([reading, stopped], return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    reading.cancel()
                    assert self.end is not None
                    response = error(409, "fenced", end=self.end, **self.end)
                    response.force_close()
                    return response
                data = reading.result()
                if not data:
                    break
                await self.may_log.wait()
                self._log(place, data, request)
                place += len(data)
        finally:
            stopped.cancel()
        self.end = {"reason": "complete", "seq": 9, "cursor": "e.f.9", "bytes": 3, "sha256": "d1"}
        return web.json_response(self.end)

    def _log(self, place: int, data: bytes, request: web.Request) -> None:
        cut = self.break_at is not None and place + len(data) > self.break_at
        if cut and self.break_at is not None:
            data = data[: max(0, self.break_at - place)]
            self.break_at = None
        self.raw += data[len(self.raw) - place :]
        self.news.set()
        if cut:
            assert request.transport is not None
            request.transport.abort()
            raise web.HTTPServiceUnavailable


def error(status: int, code: str, **details: Any) -> web.Response:
    body = {"error": {"code": code, "message": f"{code} it is", "retryable": status >= 500, "details": details}}
    return web.json_response(body, status=status)


def answering(response: Callable[[], web.Response]) -> Fault:
    async def fault(_request: web.Request) -> web.StreamResponse:
        return response()

    return fault


async def passing(_request: web.Request) -> None:
    """No fault."""


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def run_server(count: int = 1, **fields: Any) -> AsyncIterator[RunServer]:
    server = RunServer(**fields)
    if "may_log" not in fields:
        server.may_log.set()
    run = "/v1/sessions/{session}/runs/{run}"
    async with AsyncExitStack() as stack:
        for _ in range(count):
            url = await stack.enter_async_context(
                serving(web.route("*", run, server.handle), web.route("*", run + "/{what}", server.handle))
            )
            server.urls.append(url)
        yield server


def publisher_of(server: RunServer, **options: Any) -> Publisher:
    return Publisher(server.urls, session="s", **({"timing": QUICK} | options))
