"""A storm through each real proxy: who is refused is told so by a gateway, and never by a proxy that thinks it dead."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import aiohttp
import pytest

from loadtest.fronts import FILES, Front, program
from loadtest.stage import Stage

pytestmark = pytest.mark.fault
CLIENTS = 80


@pytest.mark.parametrize(
    "kind", ["nginx", *(pytest.param(name, marks=pytest.mark.soak) for name in FILES if name != "nginx")]
)
async def test_refusals_of_a_storm_are_the_gateways_own(stage: Stage, kind: str) -> None:
    """Failure catalogue K15. nginx once took 503 for a dead gateway, marked all of them, and said 502 for a minute."""
    if program(kind) is None:
        pytest.skip(f"{kind} is not installed")
    budget = {"admission__resumes_per_second": "25", "admission__resumes_burst": "25"}
    gateway = await stage.gateway(stage.server().url, **budget)
    front = Front(kind, [gateway] * 3, stage.folder / kind, {})
    statuses: Counter[int] = Counter()
    async with asyncio.timeout(50), AsyncExitStack() as stack:
        stack.push_async_callback(front.end)
        await front.start()
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))

        async def come_back(number: int) -> None:
            url = f"{front.url}/v1/sessions/s{number}/ws?client=c&last_received_seq=0"
            while True:
                try:
                    await stack.enter_async_context(http.ws_connect(url))
                except aiohttp.WSServerHandshakeError as exc:
                    statuses[exc.status] += 1
                    headers = exc.headers or {}
                    await asyncio.sleep(float(headers.get("Retry-After", 1)))
                else:
                    statuses[101] += 1
                    return

        await asyncio.gather(*(come_back(number) for number in range(CLIENTS)))

    assert statuses.keys() == {101, 503}
    assert statuses[101] == CLIENTS
