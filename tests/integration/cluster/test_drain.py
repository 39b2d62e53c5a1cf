"""A drain that knows who is in mid-sentence, and one that is taken back (C7, K01, K02)."""

import asyncio
import json
import time

import aiohttp
import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless
from loadtest.witness import Verdict

pytestmark = pytest.mark.fault

WITHIN_SECONDS = 15.0
SLOW_DRAIN = {
    "drain__settle_seconds": "0.3",
    "drain__window_seconds": "6",
    "drain__pace_ms": "2000",
    "drain__deadline_seconds": "14",
    "drain__overlap_seconds": "0.5",
}


def spec(name: str, session: str, gateways: list[Gateway]) -> dict[str, object]:
    return {"name": name, "session": session, "urls": [gateway.url for gateway in gateways], "is_staying_away": True}


def told_at(verdict: Verdict) -> float:
    (event,) = verdict.events("reconnect_later")
    return float(event["at"])


def closed_at(verdict: Verdict) -> float:
    (event,) = verdict.events("closed")
    return float(event["at"])


async def test_idle_leave_first_then_between_runs_and_in_a_run_right_after_its_end(stage: Stage) -> None:
    """Three sessions on the gateway that drains; the stream of one comes in at another gateway and ends meanwhile."""
    server = stage.server()
    draining = await stage.gateway(server.url, **SLOW_DRAIN)
    other = await stage.gateway(server.url)
    end = asyncio.Event()

    async def words() -> object:
        yield b"Once upon a time "
        await end.wait()
        yield b"it ended."

    async with aiohttp.ClientSession() as http:
        async with http.post(f"{other.url}/v1/sessions/between/runs/r/stream", data=b"Done.") as answer:
            assert 200 == answer.status
        streaming = asyncio.create_task(http.post(f"{other.url}/v1/sessions/talking/runs/r/stream", data=words()))
        await stage.witness.open(
            spec("talking", "talking", [draining]),
            spec("between", "between", [draining]),
            spec("idle", "idle", [draining]),
        )
        await stage.witness.wait(WITHIN_SECONDS, welcomes=1)
        await stage.witness.wait(WITHIN_SECONDS, ["talking"], position=2)

        draining.terminate()
        await asyncio.sleep(1.5)
        end.set()
        ended = time.monotonic()
        assert 200 == (await streaming).status
        assert 0 == await draining.wait(WITHIN_SECONDS)

    verdicts = {verdict.name: verdict for verdict in await stage.witness.judge()}
    assert {"1012": 1} == verdicts["talking"].closes
    assert closed_at(verdicts["idle"]) < closed_at(verdicts["between"])
    assert max(told_at(verdicts["idle"]), told_at(verdicts["between"])) < ended <= told_at(verdicts["talking"])
    # It had its whole text before it was told, and left long before its turn of six seconds.
    assert closed_at(verdicts["talking"]) - ended < 4
    assert_flawless(list(verdicts.values()))


async def test_operator_takes_a_drain_back(stage: Stage) -> None:
    """Nobody new meanwhile; then the gateway serves again, and whoever was left never noticed."""
    server = stage.server()
    gateway = await stage.gateway(server.url, **SLOW_DRAIN)
    await stage.witness.open(*(spec(f"r{n}", "s", [gateway]) for n in range(4)))
    await stage.witness.wait(WITHIN_SECONDS, welcomes=1)
    publisher = stage.publisher([gateway], "s")

    answer = await ask_once(gateway.admin_url, "POST", "/admin/drain")
    ready = await gateway.admin("/readyz")
    refused = await ask_once(gateway.url, "GET", "/v1/sessions/s/ws?client=late")
    await asyncio.sleep(0.6)
    undone = await ask_once(gateway.admin_url, "DELETE", "/admin/drain")
    await publisher.publish({"kind": "data", "n": 1})

    assert (202, 503, 503, 200) == (answer.status, ready.status, refused.status, undone.status)
    assert {"draining": False} == json.loads(undone.body)
    assert 200 == (await gateway.admin("/readyz")).status
    assert 200 == (await ask_once(gateway.url, "GET", "/v1/sessions/s/ws?client=late")).status
    await stage.witness.wait(WITHIN_SECONDS, position=publisher.ledger.head)
    await asyncio.sleep(3)
    assert all(not verdict.closes for verdict in await stage.witness.judge())


async def test_emptied_gateway_takes_streams_again_after_the_drain_was_taken_back(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, drain__settle_seconds="0")
    url = f"{gateway.url}/v1/sessions/s/runs/r/stream"

    await ask_once(gateway.admin_url, "POST", "/admin/drain")
    async with aiohttp.ClientSession() as http:
        deadline = time.monotonic() + WITHIN_SECONDS
        while True:
            async with http.post(url, data=b"x") as answer:
                if answer.status == 503:
                    break
            assert time.monotonic() < deadline
        await ask_once(gateway.admin_url, "DELETE", "/admin/drain")
        async with http.post(f"{gateway.url}/v1/sessions/s/runs/r2/stream", data=b"Hello.") as answer:
            assert (200, "complete") == (answer.status, (await answer.json())["reason"])
