"""Clients on a bad network: judged, told, and given the same text in larger pieces (A4, A11, B7)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.publisher import Publisher, PublishFailed
from loadtest.slow_link import SlowLink
from loadtest.stage import Stage, assert_flawless, assert_texts
from tests.integration.event_source import streaming

pytestmark = pytest.mark.fault

TOKEN_SECONDS = 0.02
WINDOW_SECONDS = 3.0
OFTEN = {"liveness__heartbeat_seconds": "2"}
"""So that the first measurement comes soon; more than the round trip, as only the newest ping is measured."""


def link_to(gateway: Gateway, one_way_seconds: float) -> SlowLink:
    where = urlsplit(gateway.url)
    assert where.hostname is not None
    assert where.port is not None
    return SlowLink(where.hostname, where.port, one_way_seconds)


@asynccontextmanager
async def tokens(publisher: Publisher, run: str, *, is_to_be_interrupted: bool = False) -> AsyncIterator[None]:
    """Fifty a second, until the end of the block; then the run ends, unless somebody ended it."""
    is_over = asyncio.Event()

    async def publish() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            try:
                await publisher.publish({"kind": "delta", "run": run, "text": f"{number} äöü "})
            except PublishFailed:
                assert is_to_be_interrupted
                return
            await asyncio.sleep(TOKEN_SECONDS)

    await publisher.publish({"kind": "run_start", "run": run})
    publishing = asyncio.create_task(publish())
    try:
        yield
    finally:
        is_over.set()
        await publishing
    if not is_to_be_interrupted:
        await publisher.publish({"kind": "run_end", "run": run, "reason": "end"})


async def until_metric(gateway: Gateway, value: float, seconds: float, name: str, **labels: str) -> None:
    deadline = time.monotonic() + seconds
    while await gateway.metric(name, **labels) != value:
        assert time.monotonic() < deadline, f"{name} {labels} is not {value} after {seconds} s"
        await asyncio.sleep(0.1)


async def text_frames(stage: Stage) -> list[int]:
    return [verdict.count("text_frames") for verdict in await stage.witness.judge()]


async def qualities_of(gateway: Gateway) -> dict[str, Any]:
    answer = await ask_once(gateway.url, "GET", "/v1/sessions/s")
    return {client["client"]: client["quality"] for client in answer.json()["clients"]}


async def test_a_second_of_round_trip_gets_four_frames_a_second_and_the_whole_text(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **OFTEN)
    publisher = stage.publisher([gateway], "s")
    async with link_to(gateway, 0.5) as link:
        await stage.witness.open(
            {"name": "acking", "session": "s", "urls": [link.url], "is_acking": True},
            {"name": "plain", "session": "s", "urls": [link.url]},
            {"name": "near", "session": "s", "urls": [gateway.url], "is_acking": True},
        )
        await stage.witness.wait(10, welcomes=1)
        async with tokens(publisher, "r1"):
            await until_metric(gateway, 2, 40, "connections", state="coalescing")
            await asyncio.sleep(1)  # what was on its way before
            before, began = await text_frames(stage), time.monotonic()
            await asyncio.sleep(WINDOW_SECONDS)
            after, seconds = await text_frames(stage), time.monotonic() - began
            known = await qualities_of(gateway)
            link.one_way_seconds = 0.0
            await until_metric(gateway, 0, 20, "connections", state="coalescing")
        await stage.witness.wait(10, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger)
    acking, plain, near = (now - then for now, then in zip(after, before, strict=True))
    assert_flawless(verdicts)
    assert_texts(verdicts, publisher.ledger)
    for frames in (acking, plain):
        # At least one in half a second, so nothing waits for longer.
        assert 2 * WINDOW_SECONDS <= frames <= 4 * seconds + 2
        assert near > 2 * frames
    assert known == {"acking": "poor", "plain": "poor", "near": "good"}
    assert all(verdict.raw["controls"]["quality"] >= 2 for verdict in verdicts[:2])
    assert "quality" not in verdicts[2].raw["controls"]
    assert await gateway.metric("coalesced_messages_total") > 0
    assert await gateway.metric("quality_changes_total", quality="poor") == 2


async def test_lost_messages_moves_and_an_interrupt_leave_a_poor_connections_text_exact(stage: Stage) -> None:
    """The faults that a live connection has to bear, while its text is merged."""
    server = stage.server()
    proxy = await stage.proxy(server)
    sensitive = {"quality__poor_rtt_ms": "20", "quality__fair_rtt_ms": "10", "liveness__heartbeat_seconds": "0.5"}
    gateway = await stage.gateway(proxy.url, **sensitive)
    publisher = stage.publisher([gateway], "s")
    async with link_to(gateway, 0.03) as link:
        common = {"session": "s", "urls": [link.url], "is_acking": True}
        await stage.witness.open({"name": "stays", **common}, {"name": "moves", **common}, {"name": "stops", **common})
        await stage.witness.wait(10, welcomes=1)
        async with tokens(publisher, "r1"):
            await until_metric(gateway, 3, 40, "connections", state="coalescing")
            for _ in range(6):
                proxy.drop_message(lambda payload: payload.startswith(b"1m"))
                await proxy.all_hit()
                await stage.witness.ask("move", name="moves")
        async with tokens(publisher, "r2", is_to_be_interrupted=True):
            await until_metric(gateway, 3, 40, "connections", state="coalescing")
            await asyncio.sleep(0.4)  # some of it is seen, some waits
            answer = await stage.witness.ask("interrupt", name="stops", run="r2", seconds=10)
        end_seq = answer["accepted"]["end_seq"]
        await stage.witness.wait(10, position=end_seq)

    stays, moves, stops = await stage.witness.judge()
    end = {name: value for name, value in stays.raw["ends"]["r2"].items() if name != "at"}
    publisher.ledger.note(publisher.ledger.line, end_seq, end)
    verdicts = await stage.witness.judge(publisher.ledger)
    assert_flawless(verdicts)  # nothing of the run after the acknowledgement is part of it
    assert_texts(verdicts[:2], publisher.ledger)
    assert len(stops.raw["cuts"]) <= 1, "one stretch is one frame"
    assert proxy.counts["messages_dropped"] == 6
    assert moves.count("moves") == 6
    assert all(verdict.count("merged_frames") > 5 for verdict in verdicts)


@pytest.mark.soak
async def test_an_event_stream_that_was_read_slowly_gets_its_text_merged(stage: Stage) -> None:
    """There is no ping: what it does not take says it."""
    gateway = await stage.gateway(stage.server().url, retention__max_bytes="8 MiB")
    publisher = stage.publisher([gateway], "s")
    async with streaming(gateway.url, "/v1/sessions/s/events?client=sse&from=start", receive_bytes=8192) as stream:
        await stream.event("welcome")
        for _ in range(40):
            await publisher.publish({"kind": "delta", "run": "r1", "text": "long " * 10_000})
        async with tokens(publisher, "r1"):
            await until_metric(gateway, 1, 30, "connections_by_quality", quality="poor")
            reading = asyncio.create_task(
                stream.until(lambda it: it.events[-1].json["payload"].get("kind") == "run_end", 60)
            )
            await until_metric(gateway, 1, 20, "connections", state="coalescing")
            await asyncio.sleep(0.6)
        await reading

    seqs = stream.seqs
    assert seqs == list(range(1, publisher.ledger.head + 1))
    assert stream.text == publisher.ledger.texts()["r1"]
    assert stream.named("quality")[0].json["payload"]["level"] in ("fair", "poor")
    assert await gateway.metric("coalesced_messages_total") > 0
