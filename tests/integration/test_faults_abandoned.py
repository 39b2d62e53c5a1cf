"""A connect that its client gave up, found by a gateway that was frozen: it must not take anything over."""

import asyncio
import time

import aiohttp
import pytest

from loadtest.processes import Gateway
from loadtest.stage import Stage

pytestmark = pytest.mark.fault
CONNECTS = 5
QUIET_SECONDS = 1.0


async def test_an_abandoned_connect_does_not_supersede_who_moved_on(stage: Stage) -> None:
    """The kernel of a stopped process still accepts; by the time it goes on, the client is at another gateway."""
    server = stage.server()
    frozen, other = await stage.start_gateways(2, server.url)
    frozen.freeze()
    for _ in range(CONNECTS):
        await _connect_and_give_up(frozen)
    async with aiohttp.ClientSession() as http, http.ws_connect(_address(other)) as ws:
        welcome = await ws.receive_json(timeout=5)
        assert welcome["payload"]["kind"] == "welcome"

        frozen.thaw()
        deadline = time.monotonic() + 5
        while await frozen.metric("connects_total", outcome="left") < CONNECTS:
            assert time.monotonic() < deadline, frozen.log()
            await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):  # no `superseded`, no close
            await ws.receive(timeout=QUIET_SECONDS)
    assert await frozen.metric("connects_total", outcome="accepted") == 0


async def _connect_and_give_up(gateway: Gateway) -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await http.ws_connect(_address(gateway))


def _address(gateway: Gateway) -> str:
    return f"{gateway.url}/v1/sessions/s/ws?client=c"
