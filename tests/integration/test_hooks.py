"""The examples of hooks in a running gateway: words starred, fields added, state brought along (A6)."""

import json
from hashlib import sha256
from typing import Any

import aiohttp

from loadtest.stage import Stage

USE = [
    {"name": "words", "target": "examples.hooks:WordFilter", "options": {"words": ["darn"]}},
    {"name": "direction", "target": "examples.hooks:DirectionTag"},
    {"name": "title", "target": "examples.hooks:TitleOnResume", "options": {"titles": {"chat": "Plans"}}},
]


async def read_until(socket: aiohttp.ClientWebSocketResponse, kind: str) -> list[dict[str, Any]]:
    frames = []
    while not frames or frames[-1]["payload"]["kind"] != kind:
        frames.append(json.loads(await socket.receive_str(timeout=10)))
    return frames


async def test_each_hook_works_at_its_place_live_and_replayed(stage: Stage) -> None:
    server = stage.server()
    gateway = await stage.gateway(server.url, hooks__use=json.dumps(USE))
    text = "what a darn שלום"

    async def chunks() -> Any:
        for size in range(0, len(text), 3):
            yield text[size : size + 3].encode()

    async with aiohttp.ClientSession(gateway.url) as http:
        async with http.ws_connect("/v1/sessions/chat/ws?client=one") as socket:
            await read_until(socket, "state")
            url = "/v1/sessions/chat/runs/r1/stream?dialect=text&segment=tokens&tokens=2"
            async with http.post(url, data=chunks()) as answer:
                report = await answer.json()
            live = await read_until(socket, "run_end")
        async with http.ws_connect("/v1/sessions/chat/ws?client=two&from=start") as socket:
            replayed = await read_until(socket, "run_end")
            late = await read_until(socket, "state") if all(f["payload"]["kind"] != "state" for f in replayed) else []

    said = "what a **** שלום"
    for frames in (live, replayed):
        deltas = [frame for frame in frames if frame["payload"]["kind"] == "delta"]
        assert said == "".join(frame["payload"]["text"] for frame in deltas)
        assert [{"dir": "rtl"}] == [frame["ext"] for frame in deltas if "ש" in frame["payload"]["text"]]
        assert sha256(said.encode()).hexdigest() == frames[-1]["payload"]["sha256"]
    states = [frame for frame in (*replayed, *late) if frame["payload"]["kind"] == "state"]
    assert [{"kind": "state", "hook": "title", "data": {"title": "Plans"}}] == [frame["payload"] for frame in states]
    assert report["bytes"] == len(said.encode())
