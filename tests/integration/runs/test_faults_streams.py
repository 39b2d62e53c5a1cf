"""Gateways and servers that die under open streams: the producer goes on elsewhere, and nobody sees a seam.

Each test prints its seed; FAULT_SEED repeats it.
"""

import asyncio
import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gateway.adapters.client.publish_stream import StreamResult, publish_stream
from gateway.adapters.client.settings import BackoffSettings, StreamSettings
from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless
from tests.integration.runs.recordings import OPTIONS, Recording, chunks, own, shared
from tests.integration.runs.requests import ask, in_log, port_of
from tests.unit.adapters.http.serving_runs import RawStream

QUICK = StreamSettings(BackoffSettings(0.02, 0.2), request_seconds=6, give_up_seconds=20)
RUN_SECONDS = 1.0
"""A stream takes about so long: several appends before and after the fault."""


async def publish(
    stage: Stage,
    gateways: Sequence[Gateway],
    session: str,
    recording: Recording,
    mode: str,
    *,
    share: float,
    fault: "asyncio.Event | None" = None,
    run: str = "r",
) -> StreamResult:
    """At `share` of the input `fault` is set; the stream goes on meanwhile."""
    rng = random.Random(stage.rng.random())

    async def pause() -> None:
        await asyncio.sleep(rng.uniform(0, 2 * RUN_SECONDS / 80))

    async def strike() -> None:
        if fault is not None:
            fault.set()

    at = max(1, round(share * len(recording.data)))
    return await publish_stream(
        [gateway.url for gateway in gateways],
        session,
        run,
        chunks(recording, rng, pause, at=at, then=strike),
        dialect=recording.dialect,
        options=OPTIONS[mode],
        settings=QUICK,
        rng=rng,
    )


async def seat(stage: Stage, session: str, gateways: Sequence[Gateway]) -> str:
    name = f"reader of {session}"
    await stage.witness.open({"name": name, "session": session, "urls": [gateway.url for gateway in gateways]})
    await stage.witness.wait(10, [name], welcomes=1)
    return name


async def assert_whole(stage: Stage, name: str, result: StreamResult, recording: Recording) -> None:
    """Text, reasoning and digests are the provider's; nothing lost, repeated or reordered."""
    info = result.answer
    seq = info.get("seq")
    if seq is not None:
        await stage.witness.wait(10, [name], position=seq)
    async with asyncio.timeout(10):
        while True:
            shown = await stage.witness.ask("texts", name=name)
            if shown["texts"].get("r", "") == recording.text and shown["thinking"].get("r", "") == recording.reasoning:
                break
            await asyncio.sleep(0.05)
    assert_flawless(await stage.witness.judge(names=[name]))
    assert hashlib.sha256(recording.text.encode()).hexdigest() == info["sha256"]


async def killed_in_the_middle(
    stage: Stage, gateways: list[Gateway], watching: Gateway, recording: Recording, mode: str, *, share: float
) -> None:
    """The first of `gateways` has the stream; it is killed, and its place is taken again afterwards."""
    session = f"{recording.name}-{mode}"
    name = await seat(stage, session, [watching])
    strike = asyncio.Event()
    publishing = asyncio.create_task(publish(stage, gateways, session, recording, mode, share=share, fault=strike))
    await strike.wait()
    await asyncio.sleep(stage.rng.uniform(0, 0.05))
    await gateways[0].kill()
    result = await publishing

    await assert_whole(stage, name, result, recording)
    assert result.reason == "complete"
    await gateways[0].start()


def code_recording() -> tuple[Recording, float]:
    """Long code in a fence, and a moment in the middle of it."""
    [sample] = [recording for recording in own() if recording.name.startswith("long-answer")]
    body = "".join(f"line {number}: print('ünd {number}')\n" for number in range(400))
    text = f"Before.\n\n```python\n{body}```\n\nAfter."
    return replace(sample, name="fence", dialect="text", data=text.encode(), text=text, reasoning=""), 0.5


@pytest.mark.fault
async def test_the_ingesting_gateway_is_killed_at_a_random_point(stage: Stage) -> None:
    """Of streams of chance under modes of chance: the text has no seam."""
    gateways = await stage.start_gateways(3, stage.server().url)
    recordings = own() + shared()
    for recording in stage.rng.sample(recordings, 4):
        mode = stage.rng.choice(list(OPTIONS))
        await killed_in_the_middle(
            stage, gateways[:2], gateways[2], recording, mode, share=stage.rng.uniform(0.02, 0.98)
        )


@pytest.mark.soak
@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", OPTIONS)
async def test_each_stream_outlives_its_gateway(stage: Stage, mode: str) -> None:
    """All of them, each killed at a random point."""
    gateways = await stage.start_gateways(3, stage.server().url)
    for recording in own() + shared():
        await killed_in_the_middle(
            stage, gateways[:2], gateways[2], recording, mode, share=stage.rng.uniform(0.02, 0.98)
        )


@pytest.mark.fault
async def test_a_code_block_stays_one_when_its_gateway_is_killed_inside(stage: Stage) -> None:
    """Another gateway goes on in the middle of the fence."""
    gateways = await stage.start_gateways(3, stage.server().url)
    recording, share = code_recording()
    name = await seat(stage, "s", [gateways[2]])
    strike = asyncio.Event()
    publishing = asyncio.create_task(
        publish(stage, gateways[:2], "s", recording, "structure", share=share, fault=strike)
    )
    await strike.wait()
    await gateways[0].kill()
    result = await publishing

    await assert_whole(stage, name, result, recording)
    frames = (await stage.witness.ask("frames", name=name))["frames"]
    blocks = [payload for _, _, payload in frames if payload["kind"] == "code_block"]
    assert result.attaches >= 1
    assert {(1, "python")} == {(block["block"], block["language"]) for block in blocks}
    assert list(range(1, len(blocks) + 1)) == [block["part"] for block in blocks]
    assert [False] * (len(blocks) - 1) + [True] == [block["last"] for block in blocks]


@pytest.mark.fault
async def test_a_drain_moves_open_streams(stage: Stage) -> None:
    """SIGTERM: the producer is told, goes on at the next gateway; the old one ends in time and leaves nothing."""
    gateways = await stage.start_gateways(3, stage.server().url)
    [recording] = [recording for recording in own() if recording.name.startswith("long-answer")]
    name = await seat(stage, "s", [gateways[2]])
    strike = asyncio.Event()
    publishing = asyncio.create_task(publish(stage, gateways[:2], "s", recording, "tokens", share=0.4, fault=strike))
    await strike.wait()
    gateways[0].terminate()
    code = await gateways[0].wait(10)
    result = await publishing

    await assert_whole(stage, name, result, recording)
    assert (0, 1) == (code, result.attaches)


@pytest.mark.fault
async def test_flushall_under_running_producers(stage: Stage) -> None:
    """They are told, and begin their runs again; readers learn that the log is another one."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    [recording] = [recording for recording in own() if recording.name.startswith("long-answer")]
    await seat(stage, "s", gateways)
    strike = asyncio.Event()
    publishing = asyncio.create_task(publish(stage, gateways, "s", recording, "tokens", share=0.5, fault=strike))
    await strike.wait()
    server.ask("FLUSHALL")
    result = await publishing

    name = "second look"
    await stage.witness.open({"name": name, "session": "s", "urls": [gateways[1].url]})
    await stage.witness.wait(10, [name], position=result.answer["seq"])
    shown = await stage.witness.ask("texts", name=name)
    assert recording.text == shown["texts"]["r"]
    assert result.reason == "complete"


@pytest.mark.fault
async def test_lost_writes_of_a_fail_over_are_sent_again(stage: Stage) -> None:
    """A replica without the last writes takes over: 409 with the place, attach, and the text is whole."""
    primary = stage.server()
    replica = stage.server()
    proxy = await stage.proxy(primary)
    replica.follow(primary)
    gateways = await stage.start_gateways(2, proxy.url)
    [recording] = [recording for recording in own() if recording.name.startswith("long-answer")]
    strike = asyncio.Event()
    publishing = asyncio.create_task(publish(stage, gateways, "s", recording, "raw", share=0.3, fault=strike))
    await strike.wait()
    replica.wait_synced(primary)
    replica.promote()
    await asyncio.sleep(0.3)
    proxy.target = replica.target
    proxy.cut()
    result = await publishing

    name = "second look"
    await stage.witness.open({"name": name, "session": "s", "urls": [gateways[1].url]})
    await stage.witness.wait(10, [name], position=result.answer["seq"])
    shown = await stage.witness.ask("texts", name=name)
    assert recording.text == shown["texts"]["r"]
    assert result.lost_writes >= 1
    assert hashlib.sha256(recording.text.encode()).hexdigest() == result.answer["sha256"]


@pytest.mark.fault
async def test_a_short_outage_of_redis_is_bridged(stage: Stage) -> None:
    """The producer notices nothing but back-pressure."""
    proxy = await stage.proxy(stage.server())
    gateways = await stage.start_gateways(2, proxy.url)
    [recording] = [recording for recording in own() if recording.name.startswith("long-answer")]
    strike = asyncio.Event()
    publishing = asyncio.create_task(publish(stage, gateways[:1], "s", recording, "tokens", share=0.3, fault=strike))
    await strike.wait()
    proxy.stall()
    proxy.cut()
    await asyncio.sleep(1)
    proxy.heal()
    result = await publishing

    name = await seat(stage, "s", gateways[1:])
    await assert_whole(stage, name, result, recording)
    assert (result.reason, result.attaches) == ("complete", 0)


@pytest.mark.fault
async def test_a_long_outage_is_told_with_the_place_to_go_on(stage: Stage) -> None:
    """503 after the deadline, never silence; what it says of the offset holds afterwards."""
    proxy = await stage.proxy(stage.server())
    settings = {"redis__deadline_seconds": "1", "redis__call_timeout_seconds": "0.5"}
    gateways = await stage.start_gateways(2, proxy.url, **settings)
    path = "/v1/sessions/s/runs/r"
    async with RawStream.open(port_of(gateways[0]), f"{path}/stream?dialect=ndjson&segment=raw") as stream:
        stream.send(b'{"text":"one "}\n')
        await in_log(gateways[1], "s", 4)
        proxy.stall()
        proxy.cut()
        stream.send(b'{"text":"two"}\n')
        async with asyncio.timeout(5):
            status, head, body = await stream.answer()
    proxy.heal()
    error = json.loads(body)["error"]
    async with asyncio.timeout(10):
        while True:
            attached, place = await ask(gateways[1], "POST", f"{path}/attach", {})
            if attached == 200:
                break
            await asyncio.sleep(0.1)
    where = f"{path}/stream?dialect=ndjson&epoch={place['epoch']}&offset={place['offset']}"
    async with RawStream.open(port_of(gateways[1]), where) as stream:
        stream.send((b'{"text":"one "}\n{"text":"two"}\n{"event":"end"}\n')[place["offset"] :])
        stream.end()
        _, _, report = await stream.answer()

    assert (503, "unavailable", True) == (status, error["code"], error["retryable"])
    assert b"retry-after" in head.lower()
    assert error["details"]["offset"] == 16 <= place["offset"]
    assert hashlib.sha256(b"one two").hexdigest() == json.loads(report)["sha256"]


@pytest.mark.fault
async def test_tokens_go_on_when_the_gateway_that_holds_some_is_killed(stage: Stage) -> None:
    """What it held is in the run's state: the next gateway's token carries it along."""
    gateways = await stage.start_gateways(2, stage.server().url)
    options = "segment=tokens&first=0&max_delay_ms=10000"
    path = "/v1/sessions/s/runs/r"
    _, held = await ask(gateways[0], "POST", f"{path}/tokens?{options}", {"text": "held by the dead "})
    await gateways[0].kill()
    await ask(gateways[1], "POST", f"{path}/tokens", {"text": "and said by the living", "offset": held["offset"]})
    status, ended = await ask(gateways[1], "POST", f"{path}/end", {})

    text = "held by the dead and said by the living"
    assert held["held_bytes"] == held["offset"] == 17
    assert (200, hashlib.sha256(text.encode()).hexdigest()) == (status, ended["sha256"])
