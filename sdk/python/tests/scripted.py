"""A server that follows a script: what a real gateway does only in its worst moments (silence, odd closes, pages)."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web
from relayrouter import Message, Session, StateEvent, Timing, connect

from sdk.python.tests.frame_texts import welcome

QUICK = Timing(
    connect_timeout=5.0, backoff_base=0.01, backoff_max=0.05, stable_after=60.0, ack_after=0.02, climb_after=60.0
)
"""Waits that a test need not wait for."""

Scene = Callable[[web.WebSocketResponse, "Scripted"], Awaitable[None]]
"""One WebSocket, from its upgrade to its end."""
Page = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Scripted:
    """`sockets`, `streams`, `polls`, `pages` are played one a request, the last one for ever."""

    sockets: deque[Scene | Page] = field(default_factory=deque)
    streams: deque[Page] = field(default_factory=deque)
    polls: deque[Page] = field(default_factory=deque)
    decisions: deque[Page] = field(default_factory=deque)
    history: Page | None = None
    queries: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    """What clients said: payloads of control frames, whole input messages."""
    open_sockets: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def asked(self, what: str) -> list[dict[str, str]]:
        return [query for kind, query in self.queries if kind == what]

    async def until(self, condition: Callable[[], object]) -> None:
        """Looks again whenever something came here, and now and then for what happens in the session alone."""
        async with asyncio.timeout(20):
            while not condition():
                self.news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await self.news.wait()

    async def ws(self, request: web.Request) -> web.StreamResponse:
        is_upgrade = request.headers.get("Upgrade") is not None
        self._note("ws" if is_upgrade else "why", request)
        if not is_upgrade:
            return await _next(self.decisions)(request) if self.decisions else web.json_response({"ok": True})
        scene = _next(self.sockets)
        if not getattr(scene, "is_scene", False):
            return await scene(request)  # type: ignore[call-arg,arg-type,return-value]
        ws = web.WebSocketResponse(protocols=("relayrouter.v1",), timeout=0.2)
        await ws.prepare(request)
        self.open_sockets += 1
        try:
            await scene(ws, self)  # type: ignore[call-arg,arg-type]
        finally:
            self.open_sockets -= 1
            self.news.set()
        return ws

    async def events(self, request: web.Request) -> web.StreamResponse:
        self._note("events", request)
        return await _next(self.streams)(request)

    async def messages(self, request: web.Request) -> web.StreamResponse:
        is_poll = "wait" in request.query
        self._note("poll" if is_poll else "history", request)
        if is_poll:
            return await _next(self.polls)(request)
        return await self.history(request) if self.history is not None else web.Response(status=404)

    async def said(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.heard.append(body)
        self.news.set()
        what = "input" if request.path.endswith("/input") else body["kind"]
        return web.json_response({"what": what, "seq": body.get("seq"), "id": body.get("id")})

    async def hear(self, ws: web.WebSocketResponse) -> dict[str, Any] | None:
        """The next thing that the client says, pings answered; None when it left."""
        while True:
            message = await ws.receive()
            if message.type is not WSMsgType.TEXT:
                return None
            value: dict[str, Any] = json.loads(message.data)
            if value["type"] == "control" and value["payload"]["kind"] == "ping":
                pong = {**value["payload"], "kind": "pong"}
                await ws.send_json({"type": "control", "payload": pong})
                continue
            heard = value["payload"] if value["type"] == "control" else value
            self.heard.append(heard)
            self.news.set()
            return heard

    async def hear_all(self, ws: web.WebSocketResponse) -> None:
        while await self.hear(ws) is not None:
            pass

    def _note(self, what: str, request: web.Request) -> None:
        self.queries.append((what, dict(request.query)))
        self.tokens.append(request.headers.get("Authorization", ""))
        self.news.set()


def _next(script: "deque[Any]") -> Any:
    return script.popleft() if len(script) > 1 else script[0]


@asynccontextmanager
async def scripted(*sockets: Scene | Page, **pages: Any) -> AsyncIterator[Scripted]:
    server = Scripted(
        deque(sockets), **{name: deque(each) if name != "history" else each for name, each in pages.items()}
    )
    app = web.Application()
    base = "/v1/sessions/{session}"
    app.add_routes(
        [
            web.get(f"{base}/ws", server.ws),
            web.get(f"{base}/events", server.events),
            web.get(f"{base}/messages", server.messages),
            web.post(f"{base}/input", server.said),
            web.post(f"{base}/control", server.said),
        ]
    )
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def scene(play: Scene) -> Scene:
    play.is_scene = True  # type: ignore[attr-defined]
    return play


def saying(*frames: str, code: int | None = None, reason: str = "") -> Scene:
    """Send these, then close with `code`, or listen until the client leaves."""

    @scene
    async def play(ws: web.WebSocketResponse, server: Scripted) -> None:
        for frame in frames:
            await ws.send_str(frame)
        if code is not None:
            await ws.close(code=code, message=reason.encode())
        else:
            await server.hear_all(ws)

    return play


def cut_after(*frames: str) -> Scene:
    """Send these, then break the connection without a close."""

    @scene
    async def play(ws: web.WebSocketResponse, server: Scripted) -> None:
        for frame in frames:
            await ws.send_str(frame)
        transport = ws.get_extra_info("peername") and ws._req.transport  # type: ignore[union-attr]
        assert transport is not None
        transport.close()

    return play


def page(status: int, text: str = "<html>not here</html>", **headers: str) -> Page:
    """What proxies and portals say."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, content_type="text/html", headers=headers)

    return answer


def refusal(status: int, code: str, *, retryable: bool = False, **headers: str) -> Page:
    """What a gateway says."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        body = {"error": {"code": code, "message": "the reason in words", "retryable": retryable}}
        return web.json_response(body, status=status, headers=headers)

    return answer


def stream(*parts: str, stays: bool = True) -> Page:
    """Server-sent events as they are given."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for part in parts:
            await response.write(part.encode())
        if stays:
            await asyncio.Event().wait()
        return response

    return answer


def event(frame: str, name: str = "", ident: str = "") -> str:
    return (f"event: {name}\n" if name else "") + (f"id: {ident}\n" if ident else "") + f"data: {frame}\n\n"


def polled(*frames: str, cursor: str, more: bool = False, connection: str = "p1", **body: Any) -> Page:
    """One answer to a poll, or of history."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        told = {"connection": connection, "cursor": cursor, "head": 99, "more": more, "close": None}
        return web.json_response(told | {"frames": [json.loads(frame) for frame in frames]} | body)

    return answer


def nothing_new(cursor: str, connection: str = "p9") -> Page:
    """A poll that is held open as long as it asked for."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(float(request.query["wait"]))
        frames = [json.loads(welcome(int(cursor.rpartition(".")[2]), connection=connection))]
        told = {"connection": connection, "cursor": cursor, "head": 99, "more": False, "close": None}
        return web.json_response(told | {"frames": frames})

    return answer


def session_of(*servers: Scripted, timing: Timing = QUICK, **options: Any) -> Session:
    return connect([server.url for server in servers], session="s", **{"client": "me", "timing": timing} | options)


async def read(session: Session, count: int) -> list[Message]:
    """The next `count` messages."""
    found: list[Message] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found.append(await anext(session))
    return found


class States:
    """Every state that a session was in, and how long it meant to wait."""

    def __init__(self, session: Session) -> None:
        self.told: list[StateEvent] = []
        self._news = asyncio.Event()
        session.on("state", self._take)

    @property
    def waits(self) -> list[float]:
        return [event.retry_in for event in self.told if event.retry_in is not None]

    def names(self) -> list[str]:
        return [event.state.value for event in self.told]

    async def until(self, name: str, channel: str | None = None) -> StateEvent:
        async with asyncio.timeout(20):
            while True:
                for told in self.told:
                    if told.state == name and channel in (None, told.channel):
                        return told
                self._news.clear()
                await self._news.wait()

    def _take(self, told: StateEvent) -> None:
        self.told.append(told)
        self._news.set()


def tasks_of_sessions() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("relayrouter-")]
