"""What an application plugs in reaches every way to read: fields on delivery, its state on reconnect."""

import json
import time
from urllib.parse import urlencode

from loadtest.plain_http import ask_once
from loadtest.stage import Stage
from tests.integration.event_source import streaming
from tests.integration.test_hooks import USE

HEBREW = "\u05e9\u05dc\u05d5\u05dd"


async def test_streams_polls_and_history_have_what_hooks_add(stage: Stage) -> None:
    """A further poll is not told the state again: it would never wait for anything else."""
    gateway = await stage.gateway(stage.server().url, hooks__use=json.dumps(USE))
    publisher = stage.publisher([gateway], "chat")
    await publisher.publish({"kind": "delta", "run": "r", "text": HEBREW})

    async with streaming(gateway.url, "/v1/sessions/chat/events?client=one&from=start") as stream:
        await stream.until_seq(1)
        state = await stream.event("state")
    history = await ask_once(gateway.url, "GET", "/v1/sessions/chat/messages")
    first = await ask_once(gateway.url, "GET", "/v1/sessions/chat/messages?client=two&wait=5&from=start")
    query = {"client": "two", "wait": 1, "since": first.json()["cursor"], "replaces": first.json()["connection"]}
    began = time.monotonic()
    further = await ask_once(gateway.url, "GET", f"/v1/sessions/chat/messages?{urlencode(query)}")

    assert state.json["payload"]["data"] == {"title": "Plans"}
    assert stream.named("message")[0].json["ext"] == {"dir": "rtl"}
    assert history.json()["frames"][0]["ext"] == {"dir": "rtl"}
    assert {"welcome", "delta"} <= {frame["payload"]["kind"] for frame in first.json()["frames"]}
    assert [frame["payload"]["kind"] for frame in further.json()["frames"]] == ["welcome"]
    assert time.monotonic() - began >= 1
