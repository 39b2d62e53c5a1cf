"""A cluster that grew becomes even by itself, and nobody's text is cut for it (C11)."""

import asyncio

import aiohttp
import pytest

from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

EAGER = {"rebalance__patience_seconds": "0", "rebalance__rest_seconds": "0", "rebalance__per_minute": "6000"}
WITHIN_SECONDS = 100.0


async def connections(gateway: Gateway) -> int:
    text = (await gateway.admin("/metrics")).body.decode()
    return sum(int(float(line.split()[-1])) for line in text.splitlines() if line.startswith("relayrouter_channels{"))


async def test_a_new_gateway_gets_its_share_and_the_reader_of_a_run_stays(stage: Stage) -> None:
    """Failure catalogue K11."""
    server = stage.server()
    old, new = await stage.start_gateways(2, server.url, **EAGER)
    await new.kill()
    urls = [old.url, new.url]
    end = asyncio.Event()

    async def words() -> object:
        yield b"Once upon a time "
        await end.wait()
        yield b"it ended."

    async with aiohttp.ClientSession() as http:
        streaming = asyncio.create_task(http.post(f"{old.url}/v1/sessions/talking/runs/r/stream", data=words()))
        idle = [f"r{number}" for number in range(30)]
        await stage.witness.open(
            {"name": "talking", "session": "talking", "urls": urls},
            # As behind a balancer that prefers the emptiest: by an even chance 30, of whom each is asked once at most,
            # would be even in seven of ten runs.
            *({"name": name, "session": name, "urls": [old.url, new.url, new.url]} for name in idle),
        )
        await stage.witness.wait(WITHIN_SECONDS, welcomes=1)
        await stage.witness.wait(WITHIN_SECONDS, ["talking"], position=2)

        await new.start()
        async with asyncio.timeout(WITHIN_SECONDS):
            while await connections(old) > 1.15 * 31 / 2 or await connections(old) + await connections(new) < 31:
                await asyncio.sleep(0.5)
        publishers = [stage.publisher([new, old], name) for name in idle]
        for publisher in publishers:
            await publisher.publish({"kind": "data", "n": 1})
        for name in idle:
            await stage.witness.wait(WITHIN_SECONDS, [name], position=1)
        end.set()
        assert 200 == (await streaming).status
        await stage.witness.wait(WITHIN_SECONDS, ["talking"], position=4)

    verdicts = {verdict.name: verdict for verdict in await stage.witness.judge()}
    assert_flawless(list(verdicts.values()))
    # It may have been tried at the new gateway first, before that was there; it was never asked to go.
    assert not verdicts["talking"].events("reconnect_later")
    assert "1012" not in verdicts["talking"].closes
    asked = sum(len(verdicts[name].events("reconnect_later")) for name in idle)
    assert asked >= 12
