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
from loadtest.publisher import Publisher
from loadtest.slow_link import SlowLink
from loadtest.stage import Stage, assert_flawless, assert_texts

pytestmark = pytest.mark.fault

TOKEN_SECONDS = 0.02
WINDOW_SECONDS = 3.0
OFTEN = {"liveness__heartbeat_seconds": "1"}
"""So that the first measurement comes soon; from then on the gateway measures as it always does."""


@asynccontextmanager
async def tokens(publisher: Publisher, run: str) -> AsyncIterator[None]:
    """Fifty a second, until the end of the block; then the run ends."""
    is_over = asyncio.Event()

    async def publish() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            await publisher.publish({"kind": "delta", "run": run, "text": f"{number} äöü "})
            await asyncio.sleep(TOKEN_SECONDS)

    await publisher.publish({"kind": "run_start", "run": run})
    publishing = asyncio.create_task(publish())
    try:
        yield
    finally:
        is_over.set()
        await publishing
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
    where = urlsplit(gateway.url)
    assert where.hostname is not None
    assert where.port is not None
    async with SlowLink(where.hostname, where.port, 0.5) as link:
        await stage.witness.open(
            {"name": "acking", "session": "s", "urls": [link.url], "is_acking": True},
            {"name": "plain", "session": "s", "urls": [link.url]},
            {"name": "near", "session": "s", "urls": [gateway.url], "is_acking": True},
        )
        await stage.witness.wait(10, welcomes=1)
        async with tokens(publisher, "r1"):
            await until_metric(gateway, 2, 20, "connections", state="coalescing")
            await asyncio.sleep(1)  # what was on its way before
            before, began = await text_frames(stage), time.monotonic()
            await asyncio.sleep(WINDOW_SECONDS)
            after, seconds = await text_frames(stage), time.monotonic() - began
            known = await qualities_of(gateway)
            link.one_way_seconds = 0.0
            await until_metric(gateway, 0, 10, "connections", state="coalescing")
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
