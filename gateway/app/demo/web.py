"""The demo's page: static files, one feed of events, and the buttons."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from aiohttp import web

from gateway.adapters.client.requests import ReaderClosed, RequestRefused
from gateway.app.demo.cluster_buttons import ClusterButtons
from gateway.app.demo.gateways import GatewayProcess
from gateway.app.demo.line import NETWORKS
from gateway.app.demo.readers import DemoReader
from gateway.app.demo.stage import Stage
from gateway.core.tasks import TaskOwner
from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.segment import SegmentMode

_FEED_SECONDS = 0.12
"""A screen shows no more than that, and the browser stays calm."""
_KEPT_PIECES = 400
"""What a page that is opened later sees of each reader's text."""
_QUEUED_UPDATES = 200
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_FIGURES = ("run", "state", "gateway", "tokens", "tokens_per_second", "first_token_seconds", "longest_gap_seconds")
_MAX_BODY_BYTES = 4_096
_CLIENT = re.compile(r"[A-Za-z0-9_.~-]{1,128}")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; connect-src 'self'"
)
"""The page's own files, and the relay in front of the gateways, by whichever name the browser knows this machine."""
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class DemoPage:
    """One stage, any number of browsers."""

    def __init__(self, stage: Stage, owner: TaskOwner) -> None:
        self._stage = stage
        self._owner = owner
        self._feeds: set[asyncio.Queue[str]] = set()
        self._history = {reader.name: deque[dict[str, Any]](maxlen=_KEPT_PIECES) for reader in stage.readers}
        self._told_events = 0
        self._told_cluster: dict[str, Any] = {}
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Returns the port. The page's own origin must be among those that the gateways allow."""
        app = web.Application()
        app.router.add_get("/", self._file)
        app.router.add_get("/feed", self._feed)
        app.router.add_get("/{name:[a-z]+\\.(?:html|css|js)}", self._file)
        app.router.add_post("/actions/gateway/{gateway}/{signal}", self._signal)
        app.router.add_post("/actions/redis/cut", self._cut_redis)
        app.router.add_post("/actions/client/slow", self._slow)
        app.router.add_post("/actions/segment/{mode}", self._segment)
        app.router.add_post("/actions/agent/ask", self._ask)
        app.router.add_post("/actions/network/{client}", self._network)
        app.router.add_post("/actions/reader/{name}/{what}", self._reader)
        ClusterButtons(self._stage.cluster, self._stage.media, self._owner).add_routes(app.router)
        app.router.add_get("/source/{run}", self._source)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as exc:
            raise OperatorError(f"--host {host} --port {port}: {exc.strerror}; choose another port") from exc
        self._owner.start("page-feed", self._send_updates())
        bound: int = self._runner.addresses[0][1]
        return bound

    async def stop(self) -> None:
        for feed in self._feeds:
            if not feed.full():
                feed.put_nowait("")  # wakes it
        self._feeds.clear()
        if self._runner is not None:
            await self._runner.cleanup()

    # ---- the feed ----------------------------------------------------------------------------------------------

    async def _send_updates(self) -> None:
        while True:
            await asyncio.sleep(_FEED_SECONDS)
            update = self._update()
            line = json.dumps(update, ensure_ascii=False) if self._feeds else ""
            for feed in list(self._feeds):
                if feed.full():
                    self._feeds.discard(feed)  # a page that sleeps opens a new feed when it wakes
                else:
                    feed.put_nowait(line)

    def _update(self) -> dict[str, Any]:
        texts = {}
        for reader in self._stage.readers:
            pieces = list(reader.pieces)
            reader.pieces.clear()
            if pieces:
                texts[reader.name] = pieces
                self._history[reader.name].extend(pieces)
        events = [event for event in self._stage.events if event["at"] > self._told_events]
        if events:
            self._told_events = events[-1]["at"]
        return self._state() | self._news_of_the_cluster() | {"texts": texts, "events": events}

    def _news_of_the_cluster(self) -> dict[str, Any]:
        """Large, and seldom another one: only what has changed."""
        state = self._stage.cluster.state()
        news = {name: value for name, value in state.items() if self._told_cluster.get(name, ...) != value}
        self._told_cluster = state
        return news

    def _state(self) -> dict[str, Any]:
        stage = self._stage
        counts = stage.tally()
        return {
            "gateways": [{"name": it.name, "state": it.state, "pid": it.pid} for it in stage.gateways.members],
            "clients": {reader.name: reader.status() for reader in stage.readers},
            "tally": counts | {"digests": counts["digests_equal"], "faults": len(counts["faults"])},
            "redis": "cut" if stage.redis_relay.is_cut else "up",
            "slow": stage.slow_reader,
            "browsers": stage.browsers(),
            "segment": stage.agent.segment.value,
            "figures": {name: stage.figures.get(name) for name in _FIGURES},
            "inbox": list(stage.agent.items),
            "media": {"is_on": stage.media.is_on, "audio": stage.media.sent.audio, "video": stage.media.sent.video},
        }

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        headers = _HEADERS | {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        feed: asyncio.Queue[str] = asyncio.Queue(_QUEUED_UPDATES)
        self._feeds.add(feed)  # before the first look is sent: what comes meanwhile follows it
        hello = {"session": self._stage.session, "relay_port": self._stage.relay.port}
        texts = {name: list(pieces) for name, pieces in self._history.items()}
        first = self._state() | self._stage.cluster.state() | {"texts": texts, "events": self._stage.events}
        try:
            await response.write(f"event: hello\ndata: {json.dumps(hello)}\n\ndata: {json.dumps(first)}\n\n".encode())
            while feed in self._feeds:
                if line := await feed.get():
                    await response.write(f"data: {line}\n\n".encode())
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._feeds.discard(feed)
        return response

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        entry = files("gateway.app.demo").joinpath("page", name)
        if not entry.is_file():
            raise web.HTTPNotFound
        relay = f"*:{self._stage.relay.port}"
        headers = _HEADERS | {"Content-Security-Policy": f"{_POLICY} http://{relay} ws://{relay}"}
        return web.Response(
            body=entry.read_bytes(), headers=headers, content_type=_TYPES[name.rsplit(".", 1)[1]], charset="utf-8"
        )

    # ---- the buttons -------------------------------------------------------------------------------------------

    async def _signal(self, request: web.Request) -> web.Response:
        found = [member for member in self._stage.gateways.members if member.name == request.match_info["gateway"]]
        actions: dict[str, Callable[[GatewayProcess], Awaitable[None] | bool]] = {
            "kill": self._stage.kill,
            "term": self._stage.terminate,
            "freeze": self._stage.freeze,
        }
        action = actions.get(request.match_info["signal"])
        if not found or action is None:
            raise web.HTTPNotFound
        outcome = action(found[0])
        if not isinstance(outcome, bool):
            self._owner.start("fault", _finish(outcome))
        return web.Response(status=204)

    async def _cut_redis(self, _: web.Request) -> web.Response:
        self._owner.start("fault", self._stage.cut_redis())
        return web.Response(status=204)

    async def _slow(self, _: web.Request) -> web.Response:
        self._stage.toggle_slow_reader()
        return web.Response(status=204)

    async def _segment(self, request: web.Request) -> web.Response:
        try:
            self._stage.agent.segment = SegmentMode(request.match_info["mode"])
        except ValueError:
            raise web.HTTPNotFound from None
        return web.Response(status=204)

    async def _network(self, request: web.Request) -> web.Response:
        """The line of one browser."""
        body = await _body(request)
        client, network = request.match_info["client"], body.get("network")
        if not isinstance(network, str) or network not in NETWORKS or not _CLIENT.fullmatch(client):
            raise web.HTTPNotFound
        self._stage.put_on_network(client, network, takes_upgrades=body.get("blocks_websockets") is not True)
        return web.Response(status=204)

    async def _source(self, request: web.Request) -> web.Response:
        """What the provider sent of a run, to be compared with what is on a screen."""
        run, source = request.match_info["run"], self._stage.source
        if run not in source.texts:
            raise web.HTTPNotFound
        body = {"text": source.texts[run], "reasoning": source.reasonings[run], "ended": run in source.ended}
        return web.json_response(body, headers=_HEADERS)

    async def _ask(self, _: web.Request) -> web.Response:
        run = self._stage.open_run
        if run is not None:
            self._owner.start("ask", _finish(self._stage.agent.ask(run)))
        return web.Response(status=204)

    async def _reader(self, request: web.Request) -> web.Response:
        """What a person does at one of the readers. Not waited for: it is settled when a gateway can be reached."""
        name, what = request.match_info["name"], request.match_info["what"]
        found = [reader for reader in self._stage.readers if reader.name == name]
        body = await _body(request)
        actions: dict[str, Callable[[DemoReader], Awaitable[object]]] = {
            "interrupt": lambda reader: reader.interrupt(),
            "pause": lambda reader: reader.toggle_pause(),
            "say": lambda reader: reader.say(str(body.get("text", ""))),
            "answer": lambda reader: reader.answer(str(body.get("ask")), str(body.get("value"))),
        }
        if not found or what not in actions:
            raise web.HTTPNotFound
        self._owner.start("reader", self._act(found[0], actions[what]))
        return web.Response(status=204)

    async def _act(self, reader: DemoReader, action: Callable[[DemoReader], Awaitable[object]]) -> None:
        try:
            await action(reader)
        except (RequestRefused, ReaderClosed) as exc:
            self._stage.note(f"{reader.name}: {exc}")


async def _body(request: web.Request) -> dict[str, Any]:
    if (request.content_length or 0) > _MAX_BODY_BYTES:
        raise web.HTTPRequestEntityTooLarge(_MAX_BODY_BYTES, request.content_length or 0)
    try:
        body = json.loads(await request.read() or b"{}")
    except ValueError:
        raise web.HTTPBadRequest from None
    return body if isinstance(body, dict) else {}


async def _finish(outcome: Awaitable[object]) -> None:
    await outcome


__all__ = ["DemoPage"]
