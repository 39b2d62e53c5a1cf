"""History while Redis restarts: forks are announced as to connections, and no answer is made up (G9, G10)."""

import asyncio
from typing import Any

import pytest

from loadtest.plain_http import ask_once
from loadtest.publisher import delta
from loadtest.stage import Stage
from tests.integration.event_source import seqs_of, streaming

pytestmark = pytest.mark.fault


async def read(gateway_url: str, path: str) -> Any:
    """Once Redis is there for reads, too: each of the gateway's connections to it comes back in its own time."""
    async with asyncio.timeout(20):
        while (answer := await ask_once(gateway_url, "GET", path)).status == 503:
            await asyncio.sleep(0.1)
    return answer.json()


async def test_after_a_restart_history_streams_and_polls_tell_of_the_fork_alike(stage: Stage) -> None:
    server = stage.server(is_persistent=True)
    gateway = await stage.gateway(server.url)
    publisher = stage.publisher([gateway], "s")
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng, 3))
    old = publisher.ledger.line
    server.kill()
    await asyncio.to_thread(server.start)
    await publisher.publish(delta("r", stage.rng, 3))

    path = "/v1/sessions/s/messages"
    history = await read(gateway.url, f"{path}?since={old}.3")
    poll = await read(gateway.url, f"{path}?since={old}.3&client=poll&wait=5")
    async with streaming(gateway.url, "/v1/sessions/s/events?client=sse", {"Last-Event-ID": f"{old}.3"}) as stream:
        forked = await stream.event("forked")
        await stream.until_seq(6)

    assert old != publisher.ledger.line
    assert forked.last_id == f"{publisher.ledger.line}.3"
    for frames in (history["frames"], poll["frames"][1:]):
        assert frames[0]["payload"] == forked.json["payload"]
        assert seqs_of(frames[1:]) == stream.seqs == [4, 5, 6]
    assert history["cursor"] == poll["cursor"] == stream.events[-1].last_id


async def test_while_redis_is_away_it_is_said_so_and_streams_stay(stage: Stage) -> None:
    """A browser that comes meanwhile is told when to come again; a refusal is no empty history."""
    server = stage.server(is_persistent=True)
    gateway = await stage.gateway(server.url)
    publisher = stage.publisher([gateway], "s")
    await publisher.publish(delta("r", stage.rng, 3))
    async with streaming(gateway.url, "/v1/sessions/s/events?client=stays&from=start") as stays:
        await stays.until_seq(1)
        server.kill()
        answers = [
            await ask_once(gateway.url, "GET", f"/v1/sessions/s/messages{query}", timeout_seconds=20)
            for query in ("", "?client=me&wait=1")
        ]
        async with streaming(gateway.url, "/v1/sessions/s/events?client=comes") as comes:
            await comes.to_end()
        await asyncio.to_thread(server.start)
        await publisher.publish(delta("r", stage.rng, 3))
        await stays.until_seq(2, seconds=25)

    assert [(answer.status, answer.error_code) for answer in answers] == [(503, "unavailable")] * 2
    assert comes.head.status == 200
    assert [event.name for event in comes.events] == ["reconnect_later", "close"]
    assert not [event for event in stays.events if event.name in ("gap", "close")]
