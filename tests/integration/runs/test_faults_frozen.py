"""A frozen gateway takes a stream's bytes for ever: its producer notices by the lease, and goes on elsewhere."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.adapters.client.publish_stream import publish_stream
from gateway.adapters.client.settings import BackoffSettings, StreamSettings
from loadtest.stage import Stage, assert_flawless

pytestmark = pytest.mark.fault

SETTINGS = StreamSettings(BackoffSettings(0.02, 0.2), request_seconds=3, watch_seconds=0.4)
LEASE_SECONDS = 4
WORDS = 60


async def test_a_frozen_gateway_is_left_before_the_lease_ends(stage: Stage) -> None:
    """When it goes on it finds itself fenced: not a byte of what it holds comes twice."""
    gateways = await stage.start_gateways(2, stage.server().url, runs__lease_seconds=str(LEASE_SECONDS))
    frozen, other = gateways
    await stage.witness.open({"name": "reader", "session": "s", "urls": [other.url]})
    await stage.witness.wait(10, ["reader"], welcomes=1)

    async def words() -> AsyncIterator[str]:
        for number in range(WORDS):
            yield f"wörd {number} "
            await asyncio.sleep(0.03)
            if number == WORDS // 2:
                frozen.freeze()

    publishing = publish_stream(
        [frozen.url, other.url], "s", "r", words(), options={"segment": "raw"}, settings=SETTINGS, rng=stage.rng
    )
    async with asyncio.timeout(4 * LEASE_SECONDS):
        result = await publishing
    frozen.thaw()
    await asyncio.sleep(1)

    text = "".join(f"wörd {number} " for number in range(WORDS))
    assert (result.reason, result.attaches, result.answer["bytes"]) == ("complete", 1, len(text.encode()))
    await stage.witness.wait(10, ["reader"], position=result.answer["seq"])
    shown = await stage.witness.ask("texts", name="reader")
    assert shown["texts"]["r"] == text
    assert_flawless(await stage.witness.judge(names=["reader"]))
