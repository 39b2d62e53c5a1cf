"""One client on all rungs: sockets, streams and polls at any gateway, with and without a break, are one sequence."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from typing import Any, Protocol
from urllib.parse import urlencode

import aiohttp
import pytest

from loadtest.plain_http import ask_once
from loadtest.stage import Stage
from tests.integration.event_source import Stream, open_stream

pytestmark = pytest.mark.fault

HOPS = 60


class Rung(Protocol):
    """Takes what comes for a while. Returns the frames."""

    async def read(self, seconds: float) -> list[dict[str, Any]]: ...


class SocketRung:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._ws = ws

    async def read(self, seconds: float) -> list[dict[str, Any]]:
        texts: list[str] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (message := await self._ws.receive()).type is aiohttp.WSMsgType.TEXT:
                    texts.append(message.data)
        return [json.loads(text) for text in texts]


class StreamRung:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def read(self, seconds: float) -> list[dict[str, Any]]:
        with suppress(TimeoutError):
            await self._stream.to_end(seconds)
        events, self._stream.events = self._stream.events, []
        return [event.json for event in events if event.name != "close"]


class Climber:
    """Keeps the rules of a client: what is not above its position is ignored, a hole is a failure."""

    def __init__(self, stack: AsyncExitStack, http: aiohttp.ClientSession) -> None:
        self._stack = stack
        self._http = http
        self._streams: list[Stream] = []
        self.seqs: list[int] = []
        self.cursor: str | None = None
        self.connection: str | None = None
        self.kinds: set[str] = set()

    async def open(self, kind: str, url: str, *, replaces: bool) -> Rung | None:
        """None: a poll is over with its answer."""
        query: dict[str, Any] = {"client": "me"}
        query |= {"from": "start"} if self.cursor is None else {"cursor": self.cursor}
        if replaces and self.connection is not None:
            query["replaces"] = self.connection
        path = f"/v1/sessions/s/{{}}?{urlencode(query)}"
        if kind == "poll":
            answer = await ask_once(url, "GET", path.format("messages") + "&wait=2&limit=30", timeout_seconds=15)
            assert answer.status == 200, answer.body
            self.take(answer.json()["frames"])
            return None
        if kind == "sse":
            stream = await open_stream(url, path.format("events"))
            self._streams.append(stream)
            self._stack.callback(stream.writer.transport.abort)
            await stream.event("welcome")
            return StreamRung(stream)
        return SocketRung(await self._http.ws_connect(url + path.format("ws")))

    def take(self, frames: list[dict[str, Any]]) -> None:
        for frame in frames:
            payload = frame["payload"]
            if payload["kind"] == "welcome":
                self.connection = payload["connection"]
            if frame["type"] == "control":
                assert payload["kind"] in ("welcome", "superseded", "reconnect_later"), frame
                if self.cursor is None:
                    self.cursor = payload["cursor"]
                continue
            assert self.cursor is not None
            line, _, position = self.cursor.rpartition(".")
            first, last = frame.get("first_seq", frame["seq"]), frame["seq"]
            assert first <= int(position) + 1, f"a hole before {first} at {position}"
            if last > int(position):
                self.seqs += range(int(position) + 1, last + 1)
                self.cursor = f"{line}.{last}"


async def test_a_client_that_hops_between_all_channels_has_one_sequence(stage: Stage) -> None:
    """With `replaces` while the old one still receives, or after it was cut; sometimes neither is named."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, rng = stage.publisher(gateways, "s"), stage.rng
    async with AsyncExitStack() as stack, aiohttp.ClientSession() as http:
        climber = Climber(stack, http)
        async with stage.flow(publisher, per_second=200):
            rung: Rung | None = None
            for _ in range(HOPS):
                kind, gateway = rng.choice(("websocket", "sse", "poll")), rng.choice(gateways)
                climber.kinds.add(kind)
                newer = await climber.open(kind, gateway.url, replaces=rng.random() < 0.8)
                if rung is not None:  # what the old one still brought goes through the same place
                    climber.take(await rung.read(0.02))
                rung = newer
                if rung is not None:
                    climber.take(await rung.read(rng.uniform(0, 0.1)))
        while not climber.seqs or climber.seqs[-1] < publisher.ledger.head:
            await climber.open("poll", gateways[0].url, replaces=True)

    assert climber.seqs == list(range(1, publisher.ledger.head + 1))
    assert climber.kinds == {"websocket", "sse", "poll"}
