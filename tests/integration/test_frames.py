"""Every frame that a real gateway sends is one that the docs describe, with every field that they name.

One session lives through each kind: runs in mode `structure`, thinking, tools, data, asks, input, an interrupt with its
cut, snapshots after eviction, pause, rhythm, a failed run, errors, drain.
"""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any

import aiohttp

from gateway.samples import TOOL_ANSWER, load_dialect_samples
from loadtest.plain_http import Answer, ask_once
from loadtest.stage import Stage
from tools.api.frame_docs import kind_of
from tools.api.frames import SERVER_CONTROLS, TEXT_FRAMES, check_frame

SESSION = "chat-1"
BASE = f"/v1/sessions/{SESSION}"
NOT_HERE = {"state", "forked", "expiring", "quality"}
"""Need a hook, a fail-over, a token, a bad link; each has tests of its own."""


class Watcher:
    """A client that checks whatever it gets."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws
        self.frames: list[dict[str, Any]] = []
        self._unasked: list[dict[str, Any]] = []

    async def until(self, kind: str, **fields: Any) -> dict[str, Any]:
        """A frame of that kind whose payload has these, that was not given before."""
        wanted = fields.items() | {("kind", kind)}
        async with asyncio.timeout(10):
            while True:
                for frame in self._unasked:
                    if wanted <= {item for item in frame["payload"].items() if item[0] in (*fields, "kind")}:
                        self._unasked.remove(frame)
                        return frame
                frame = json.loads(await self.ws.receive_str())
                check_frame(frame)
                self.frames.append(frame)
                self._unasked.append(frame)

    async def say(self, kind: str, **fields: Any) -> None:
        await self.ws.send_json({"type": "control", "payload": {"kind": kind, **fields}})


class Scene:
    def __init__(self, url: str, http: aiohttp.ClientSession, stack: AsyncExitStack) -> None:
        self.url = url
        self._http = http
        self._stack = stack
        self.watchers: list[Watcher] = []

    async def watch(self, client: str, **query: str) -> Watcher:
        socket = self._http.ws_connect(f"{self.url}{BASE}/ws", params={"client": client, **query})
        watcher = Watcher(await self._stack.enter_async_context(socket))
        self.watchers.append(watcher)
        return watcher

    async def post(self, path: str, body: Any) -> Answer:
        answer = await ask_once(self.url, "POST", f"{BASE}{path}", body)
        assert answer.status < 300, answer.body
        return answer

    async def stream(self, run: str, data: bytes, **query: str) -> dict[str, Any]:
        async with self._http.post(f"{self.url}{BASE}/runs/{run}/stream", params=query, data=data) as response:
            answer: dict[str, Any] = await response.json()
            return answer

    async def stream_media(self, stream: str, data: bytes, **query: str) -> None:
        async with self._http.post(f"{self.url}{BASE}/media/{stream}", params=query, data=data) as response:
            assert response.status == 200

    @property
    def kinds(self) -> set[str]:
        return {frame["payload"]["kind"] for watcher in self.watchers for frame in watcher.frames}


async def test_every_frame_is_as_the_docs_say(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, retention__max_messages="100", drain__deadline_seconds="9")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession())
        scene = Scene(gateway.url, http, stack)
        me = await scene.watch("me", rhythm="1")
        other = await scene.watch("other", ack="1")

        await every_dialect(scene, me)
        await asks(scene, me, other)
        await inputs(scene, me, other)
        await a_pause(scene, me)
        again = await an_interrupt(scene, me)
        await many_hands(scene)
        await evicted(scene)
        await media(scene)
        await refusals(again)
        gateway.terminate()
        await again.until("reconnect_later")

        documented = {kind_of(frame) for frame in (*TEXT_FRAMES, *SERVER_CONTROLS)}
        assert documented - scene.kinds == NOT_HERE


async def media(scene: Scene) -> None:
    """A frame that needs another one, which was never sent."""
    seer = await scene.watch("seer", caps="video")
    await scene.stream_media("cam", b"x", type="video")
    await seer.until("media_dropped", count=1)


async def every_dialect(scene: Scene, me: Watcher) -> None:
    for sample in load_dialect_samples():
        run = sample.name.removeprefix(f"{TOOL_ANSWER}.")
        answer = await scene.stream(run, sample.chunks, dialect=sample.dialect.value, segment="structure")
        assert answer["reason"] == "complete", answer
        await me.until("run_end", run=run, reason="complete")
    code = b'{"text":"See:\\n```py\\nprint(1)\\n```\\n"}\n{"data":{"progress":1}}\n{"event":"end"}\n'
    await scene.stream("code", code, dialect="ndjson", segment="structure")
    await me.until("run_end", run="code")
    assert (await scene.stream("bad", b'{"text":"a"}\n{"oops', dialect="ndjson"))["problem"]
    await me.until("run_end", run="bad", reason="failed")
    await scene.stream("replaced", b"\xff", segment="pattern", pattern="x")
    await me.until("run_end", run="replaced", replaced=1)


async def asks(scene: Scene, me: Watcher, other: Watcher) -> None:
    body = {"ask": "a1", "message": "Delete?", "options": ["yes", {"value": "no", "label": "No"}], "reason": "careful"}
    await scene.post("/asks", {**body, "toolCallId": "call_1", "metadata": {"files": 3}, "who": {"clients": ["me"]}})
    await me.until("ask_open")
    await me.until("ask")
    await me.say("answer", ask="a1", value="maybe", id="c1")
    await me.until("error", id="c1")
    await me.say("answer", ask="a1", value="yes", id="c2")
    await me.until("accepted", what="answer")
    await other.until("ask_resolved", status="answered")
    await scene.post("/asks", {"ask": "a2", "message": "How many?", "responseSchema": {"type": "integer"}})
    await scene.post("/asks/a2/cancel", {})
    await other.until("ask_resolved", status="cancelled")
    await scene.post("/asks", {"ask": "a3", "message": "Still there?", "expires_in": 1})
    await other.until("ask_resolved", status="expired")


async def inputs(scene: Scene, me: Watcher, other: Watcher) -> None:
    await me.ws.send_json({"type": "text", "seq": 1, "payload": {"text": "hi"}})
    await me.until("accepted", what="input")
    await other.until("echo")
    for seq, text in ((1, "other"), (5, "far ahead")):
        await me.ws.send_json({"type": "text", "seq": seq, "payload": {"text": text}})
        await me.until("error", what="input")
    await scene.post("/input", {"client": "me", "seq": 2, "payload": {"text": "by HTTP"}})


async def a_pause(scene: Scene, me: Watcher) -> None:
    await me.say("pause", id=1)
    await me.until("accepted", what="pause")
    for part in range(40):
        await scene.post("/runs/paused/tokens?segment=raw", {"text": f"word{part} "})
    await scene.post("/runs/paused/end", {})
    await me.say("resume", t=2.5)
    await me.until("accepted", what="resume")
    await me.until("run_end", run="paused")


async def an_interrupt(scene: Scene, me: Watcher) -> Watcher:
    """Returns the client's next connection."""

    async def endless() -> Any:
        for _ in range(400):
            yield b'{"text":"one more "}\n'
            await asyncio.sleep(0.02)

    streaming = asyncio.create_task(scene.stream("long", endless(), dialect="ndjson", segment="raw"))  # type: ignore[arg-type]
    shown = await me.until("delta", run="long")
    await me.until("rhythm", run="long")
    seen = {"seq": shown["seq"], "at": shown["payload"]["at"] + len(shown["payload"]["text"])}
    await me.say("interrupt", run="long", seen=seen, id="c3")
    await me.until("accepted", what="interrupt", run="long")
    stopped = await streaming
    assert stopped["error"]["details"]["seen"] == seen, stopped
    end = await me.until("run_end", run="long", reason="interrupted")
    again = await scene.watch("me", **{"from": "start"})
    await again.until("cut", run="long")
    await me.until("superseded")
    assert end["payload"]["by"]
    await scene.post("/runs/short/tokens", {"text": "x"})
    await scene.post("/control", {"client": "me", "kind": "cancel", "run": "short", "reason": "enough"})
    await scene.post("/runs/brief/tokens", {"thinking": "x"})
    await scene.post("/runs/brief/cancel", {"reason": "enough"})
    await again.until("run_end", run="brief", reason="cancelled")
    return again


async def many_hands(scene: Scene) -> None:
    register = await scene.post("/producers/crew", {})
    numbered = {"producer": "crew", "epoch": register.json()["epoch"], "order": "contiguous"}
    for number in (1, 3):
        await scene.post("/push", {**numbered, "number": number, "payload": {"kind": "delta", "run": "m", "text": "x"}})
    await scene.watchers[1].until("producer_gap", producer="crew")
    await scene.post("/push", {**numbered, "number": 2, "payload": {"kind": "delta", "run": "m", "text": "late"}})
    await scene.watchers[1].until("delta", late=True)
    await scene.post("/push", {"payload": {"kind": "note", "text": "kept"}, "expires_in": 60})


async def evicted(scene: Scene) -> None:
    """Older than the log: what is whole comes as snapshots, what nothing stands for as a gap."""
    for part in range(150):
        await scene.post("/push", {"payload": {"kind": "delta", "run": "last", "text": f"{part} "}})
    late = await scene.watch("late", **{"from": "start"})
    await late.until("gap", reason="evicted")
    await late.until("snapshot", run="last")
    await late.until("delta", run="last")
    await scene.watchers[1].until("delta", run="last")


async def refusals(me: Watcher) -> None:
    await me.say("ping", id="p", t=1)
    await me.until("pong")
    await me.say("interrupt", run="unknown", t=1)
    await me.until("error", what="interrupt")
    await me.ws.send_str("no JSON")
    await me.until("error", code="bad_request")
