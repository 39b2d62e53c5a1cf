"""Order from many hands and kept pushes over HTTP: any gateway, also when the one with the timer dies (A16, C4)."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.settings import OrderSettings
from loadtest.stage import Stage
from tests.integration.resp.servers import Server
from tests.integration.test_producer_api import Api, serving

PUSH = "/v1/sessions/chat-1/push"


@pytest.fixture
def server(tmp_path: Path) -> Any:
    server = Server(tmp_path)
    server.start()
    yield server
    server.end()


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    async with serving(server) as api:
        yield api


async def root(api: Api, seq: int, **more: Any) -> Any:
    body = {"sessionId": "chat-1", "seq": seq, "type": "data", "content": f"{seq}"} | more
    return await api.post("/push", body)


async def until_texts(api: Api, *texts: str, seconds: float = 5) -> float:
    """When the log has them."""
    async with asyncio.timeout(seconds):
        while api.texts() != list(texts):
            await asyncio.sleep(0.005)
    return time.monotonic()


async def test_pushes_that_overtake_each_other_come_out_in_order(server: Server) -> None:
    numbers = list(range(1, 60))
    random.Random(3).shuffle(numbers)
    async with serving(server, OrderSettings(window_ms=5_000)) as api:
        answers = await asyncio.gather(*(root(api, number) for number in numbers))

        assert api.texts() == [f"{number}" for number in range(1, 60)]
        assert {status for status, _ in answers} == {200}
        assert {body["status"] for _, body in answers} <= {"ok", "pending"}
        assert [(await root(api, number))[1]["status"] for number in (1, 59)] == ["duplicate", "duplicate"]


async def test_what_is_missing_is_not_waited_for_longer_than_the_window(api: Api) -> None:
    await root(api, 1)
    began = time.monotonic()
    waiting = await root(api, 4)

    took = await until_texts(api, "1", "4") - began

    assert waiting == (200, {"status": "pending", "live": False})
    assert 0.19 < took < 1
    late = await root(api, 2)
    assert late == (200, {"status": "late", "seq": 3, "live": False})
    assert [frame["payload"].get("late") for frame in api.log()] == [None, None, True]
    assert api.measures.ordered == {"waited": 1, "late": 1, "gaps": 0}
    assert api.measures.sweeps["released"] == 1


async def test_two_gateways_share_one_window(server: Server) -> None:
    async with serving(server) as one, serving(server) as two:
        assert (await root(one, 2))[1]["status"] == "pending"
        assert (await root(two, 3))[1]["status"] == "pending"

        assert (await root(two, 1))[1] == {"status": "ok", "seq": 1, "live": False}

        assert one.texts() == ["1", "2", "3"]


async def test_contiguous_reports_the_hole(api: Api) -> None:
    _, registered = await api.post("/v1/sessions/chat-1/producers/p", {})
    named = {"producer": "p", "epoch": registered["epoch"], "order": "contiguous"}
    await api.push("1", number=1, **named)
    status, answer = await api.push("4", "5", number=4, **named)

    await until_texts(api, "1", "producer_gap", "4", "5")

    assert (status, answer["results"]) == (200, [{"status": "pending"}] * 2)
    gap = {"kind": "producer_gap", "producer": "p", "first": 2, "last": 3, "reason": "missing"}
    assert api.log()[1]["payload"] == gap
    assert (await api.push("x", number=9, producer="p", epoch=registered["epoch"]))[0] == 409


async def test_a_bad_message_of_an_order_is_no_hole(api: Api) -> None:
    await root(api, 1)
    await root(api, 3)
    refused = await root(api, 2, type="delta", content={"a": 1})

    assert refused[0] == 400
    assert api.texts() == ["1", "3"]
    assert (await root(api, 2))[1] == {"status": "refused", "code": "bad_request", "live": False}


async def test_after_flushall_producers_register_again(api: Api) -> None:
    _, registered = await api.post("/v1/sessions/chat-1/producers/p", {})
    named = {"producer": "p", "epoch": registered["epoch"], "order": "contiguous"}
    await api.push("1", number=1, **named)
    await api.push("3", number=3, **named)
    await root(api, 7)
    api.server.admin.flushall()

    status, body = await api.push("2", number=2, **named)
    assert (status, body["error"]["code"]) == (409, "producer_unknown")
    _, again = await api.post("/v1/sessions/chat-1/producers/p", {})
    status, body = await api.push("2", number=1, producer="p", epoch=again["epoch"], order="contiguous")
    assert (status, body["results"]) == (200, [{"status": "ok", "seq": 1}])
    await root(api, 9)  # without a registration to lose: it begins anew
    await until_texts(api, "2", "9")


async def test_a_kept_push_says_until_when(api: Api) -> None:
    before = time.time() * 1000
    status, body = await api.post(PUSH, {"payload": {"kind": "data", "text": "a"}, "expires_in": 60})
    repeat = await api.post(
        PUSH, {"payload": {"kind": "data", "text": "b"}, "expires_in": 5}, **{"Idempotency-Key": "k"}
    )
    again = await api.post(
        PUSH, {"payload": {"kind": "data", "text": "b"}, "expires_in": 9}, **{"Idempotency-Key": "k"}
    )

    assert status == 200
    assert body["live"] is False
    assert -2_000 < body["kept_until"] - before - 60_000 < 5_000
    assert again[1]["results"] == [{"status": "duplicate", "seq": 2}]
    assert again[1]["kept_until"] == repeat[1]["kept_until"]
    kept: Any = api.server.admin.hgetall("rr:{default:chat-1}:kept")
    assert [json.loads(value.partition(" ")[2])["payload"]["text"] for value in kept.values()] == ["a", "b"]
    older = await root(api, 1, expires_in=60)
    assert older[1]["kept_until"] > before


@pytest.mark.fault
async def test_the_gateway_that_holds_the_timer_may_die(stage: Stage) -> None:
    one, two = await stage.start_gateways(2, stage.server().url)
    async with aiohttp.ClientSession() as http:
        answers = []
        for seq in (1, 5):
            body = {"sessionId": "s", "seq": seq, "type": "data", "content": f"{seq}"}
            async with http.post(f"{one.url}/push", json=body) as response:
                answers.append((await response.json())["status"])
        await one.kill()
        assert answers == ["ok", "pending"]

        head = 1
        async with asyncio.timeout(8):
            while head < 2:
                await asyncio.sleep(0.1)
                async with http.get(f"{two.url}/v1/sessions/s") as response:
                    head = (await response.json())["head"]
        body = {"sessionId": "s", "seq": 5, "type": "data", "content": "5"}
        async with http.post(f"{two.url}/push", json=body) as response:
            assert (await response.json())["status"] == "duplicate"


async def test_late_messages_are_refused_where_the_operator_says_so(server: Server) -> None:
    async with serving(server, OrderSettings(accept_late=False)) as api:
        await root(api, 1)
        await root(api, 3)
        await until_texts(api, "1", "3")

        status, body = await root(api, 2)

        assert (status, body["error"]["code"]) == (409, "conflict")
        assert body["error"]["details"] == {"reason": "late", "index": 0}
        assert api.texts() == ["1", "3"]
