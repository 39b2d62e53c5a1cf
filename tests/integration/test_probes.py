"""Probes and metrics of a whole gateway: while it drains, while Redis is away, and with many ids and paths."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from loadtest.processes import Gateway
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

SLOWEST_ANSWER_SECONDS = 1.0
"""A kubelet's time-out by default."""


@asynccontextmanager
async def sockets(gateway: Gateway, count: int) -> AsyncIterator[list[aiohttp.ClientWebSocketResponse]]:
    """Connected and welcomed, each in a session of its own."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:

        async def connect(number: int) -> aiohttp.ClientWebSocketResponse:
            ws = await http.ws_connect(f"{gateway.url}/v1/sessions/s{number}/ws?client=c")
            assert json.loads(await ws.receive_str())["payload"]["kind"] == "welcome"
            return ws

        yield [await connect(number) for number in range(count)]


async def probe(http: aiohttp.ClientSession, url: str) -> tuple[int, Any]:
    """Status and body; 0 when nobody listens any more. Fails when the answer takes too long."""
    began = time.monotonic()
    try:
        async with http.get(url) as response:
            answer = response.status, await response.json()
    except aiohttp.ClientConnectionError:
        return 0, None
    assert time.monotonic() - began < SLOWEST_ANSWER_SECONDS
    return answer


async def test_a_draining_gateway_stays_alive_and_unready_until_its_last_socket_is_gone(stage: Stage) -> None:
    server = stage.server()
    gateway = await stage.gateway(server.url, drain__window_seconds="2")
    lives, readies = [], []
    async with aiohttp.ClientSession() as http, sockets(gateway, 300) as open_sockets:
        before = await probe(http, gateway.admin_url + "/readyz")

        gateway.terminate()
        readers = [asyncio.ensure_future(_until_closed(ws)) for ws in open_sockets]
        while gateway.is_running:
            lives.append((await probe(http, gateway.admin_url + "/livez"))[0])
            readies.append((await probe(http, gateway.admin_url + "/readyz"))[0])
            await asyncio.sleep(0.1)
        codes = await asyncio.gather(*readers)

    assert before == (200, {"ready": True, "reasons": []})
    assert lives.count(200) > 5
    assert set(lives) <= {200, 0}
    # The very first probe may overtake the signal's delivery.
    assert set(readies[1:]) <= {503, 0}
    assert set(codes) == {1012}


async def _until_closed(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    while not ws.closed:
        await ws.receive()
    return ws.close_code


async def test_redis_away_kills_nobody_and_empties_the_service_only_after_the_grace(stage: Stage) -> None:
    server = stage.server()
    gateway = await stage.gateway(server.url, readiness__redis_grace_seconds="2")
    async with aiohttp.ClientSession() as http, sockets(gateway, 20) as open_sockets:
        server.freeze()
        frozen_at = time.monotonic()
        lives, readies = set(), []
        while time.monotonic() < frozen_at + 7:
            lives.add((await probe(http, gateway.admin_url + "/livez"))[0])
            readies.append((time.monotonic() - frozen_at, *(await probe(http, gateway.admin_url + "/readyz"))))
            await asyncio.sleep(0.1)
        server.thaw()
        await _until_ready(http, gateway)
        push = {"payload": {"kind": "data", "n": 1}}
        async with http.post(f"{gateway.url}/v1/sessions/s7/push", json=push) as response:
            pushed = response.status
        frame = json.loads(await asyncio.wait_for(open_sockets[7].receive_str(), 5))

        assert lives == {200}
        assert all(status == 200 for after, status, _ in readies if after < 2)
        assert readies[-1][1:] == (503, {"ready": False, "reasons": ["redis"]})
        assert pushed == 200
        assert frame["payload"]["n"] == 1
        assert not any(ws.closed for ws in open_sockets)
        assert await gateway.metric("connections") == 20
    assert gateway.log().count('"not_ready"') == 1


async def _until_ready(http: aiohttp.ClientSession, gateway: Gateway) -> None:
    async with asyncio.timeout(10):
        while (await probe(http, gateway.admin_url + "/readyz"))[0] != 200:
            await asyncio.sleep(0.05)


async def test_ids_paths_and_methods_of_callers_make_no_series(stage: Stage) -> None:
    """Failure catalogue P01."""
    server = stage.server()
    gateway = await stage.gateway(server.url)
    async with aiohttp.ClientSession() as http:
        before = await _series(gateway)
        for number in range(100):
            push = {"payload": {"kind": f"kind-{number}"}}
            await _drop(http.post(f"{gateway.url}/v1/sessions/odd-{number}/push", json=push))
            await _drop(http.get(f"{gateway.url}/odd-path-{number}"))
            await _drop(http.request(f"ODD{number}", f"{gateway.url}/relay"))
        async with sockets(gateway, 20) as open_sockets:
            for number, ws in enumerate(open_sockets):
                await ws.send_str(json.dumps({"type": "control", "payload": {"kind": f"odd-{number}"}}))
                await ws.close(code=4000 + number)
        after = await _series(gateway)

    assert set(after) == set(before)
    assert not [series for series in after if "odd" in series.lower()]
    assert after["relayrouter_appended_messages_total"] == 100
    assert before['relayrouter_connections{state="live"}'] == after['relayrouter_connections{state="live"}'] == 0


async def _drop(request: Any) -> None:
    async with request as response:
        await response.read()


async def _series(gateway: Gateway) -> dict[str, float]:
    text = (await gateway.admin("/metrics")).body.decode()
    return {match[1]: float(match[2]) for match in re.finditer(r"^([^#\s]+) (\S+)$", text, re.MULTILINE)}
