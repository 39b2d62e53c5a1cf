"""The inbox over real gateways: leases, repeats, dead letters, the Python consumer and the command."""

import asyncio
import json
import os
import signal
import sys
import time

import pytest

from gateway.adapters.client.inbox import Inbox, InboxError, InboxItem, InboxSettings
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.agent.api import ack, call, get, send_input, take


async def send(gateway: Gateway, count: int, session: str = "s", first: int = 1) -> list[str]:
    """The ids of the items."""
    for seq in range(first, first + count):
        answer = await send_input(gateway, session, seq, f"text {seq}")
        assert 200 == answer.status, answer.body
    return [f"{session}:phone:{seq}" for seq in range(first, first + count)]


async def test_a_long_poll_at_another_gateway_is_woken(stage: Stage) -> None:
    one, two = await stage.start_gateways(2, stage.server().url)
    taking = asyncio.create_task(take(two, wait=20))
    await asyncio.sleep(0.5)
    began = time.monotonic()

    await send(one, 1)
    (item,) = await taking

    assert time.monotonic() - began < 2
    assert (1, "s:phone:1", "input") == (item["deliveries"], item["item"]["id"], item["item"]["kind"])
    assert "text 1" == item["item"]["payload"]["text"]


async def test_an_item_comes_again_when_its_lease_ends_and_not_before_nor_after_its_ack(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    await send(gateway, 1)
    (first,) = await take(gateway, "a", wait=5, lease_ms=2_000)

    assert [] == await take(gateway, "b")
    body = {"consumer": "a", "items": [first["receipt"]]}
    assert {"extended": 1} == await get(gateway, "POST", "/v1/inbox/extend", body)
    (again,) = await take(gateway, "b", wait=20, lease_ms=1_000)
    assert (2, first["item"]) == (again["deliveries"], again["item"])
    assert 1 == await ack(gateway, [again])
    assert 0 == await ack(gateway, [first])
    assert [] == await take(gateway, "c", wait=2)
    assert {"waiting": 0, "dead": 0, "oldest_ms": 0} == await get(gateway, "GET", "/v1/inbox")


async def test_dead_letters_are_listed_and_put_back(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    ids = await send(gateway, 2)
    items = []
    while len(items) < 2:
        items += await take(gateway, wait=5)
    body = {"items": [item["receipt"] for item in items], "reason": "nobody can do it"}
    assert {"buried": 2} == await get(gateway, "POST", "/v1/inbox/bury", body)

    letters = (await get(gateway, "GET", "/v1/inbox/dead"))["items"]
    lag = await get(gateway, "GET", "/v1/inbox")
    one = await get(gateway, "POST", "/v1/inbox/redrive", {"items": [letters[0]["entry"]]})
    rest = await get(gateway, "POST", "/v1/inbox/redrive", {})

    assert [(ident, "nobody can do it") for ident in ids] == [(it["item"]["id"], it["reason"]) for it in letters]
    assert (0, 2) == (lag["waiting"], lag["dead"])
    assert (1, 1) == (one["redriven"], rest["redriven"])
    back = []
    while len(back) < 2:
        back += await take(gateway, wait=5)
    assert ids == sorted(item["item"]["id"] for item in back)


async def test_requests_that_cannot_be_meant_are_refused(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    for path, body in (
        ("take", {"max": 1}),
        ("take", {"consumer": "", "max": 1}),
        ("take", {"consumer": "c", "max": 0}),
        ("take", {"consumer": "c", "lease_ms": 10}),
        ("ack", {"items": []}),
        ("ack", {"items": ["nonsense"]}),
        ("extend", {"items": ["0/1-1"]}),
        ("redrive", {"items": []}),
    ):
        answer = await call(gateway, "POST", f"/v1/inbox/{path}", body)
        assert (400, "bad_request") == (answer.status, answer.error_code), (path, body)
    assert {"acked": 0} == await get(gateway, "POST", "/v1/inbox/ack", {"items": ["99/1-1", "0/x", "0/7-7"]})
    assert 400 == (await call(gateway, "GET", "/v1/inbox/dead?limit=0")).status


# ---- the Python consumer -----------------------------------------------------------------------------------------

QUICK = InboxSettings(lease_seconds=2, wait_seconds=5, request_seconds=5)


async def some(inbox: Inbox, count: int, *, do_ack: bool = True) -> list[InboxItem]:
    found: list[InboxItem] = []
    async with asyncio.timeout(25):
        async for item in inbox:
            found.append(item)
            if do_ack:
                await item.ack()
            if len(found) == count:
                break
    return found


@pytest.mark.fault
async def test_the_consumer_goes_on_at_another_gateway(stage: Stage) -> None:
    one, two = await stage.start_gateways(2, stage.server().url)
    ids = await send(two, 3)
    async with Inbox([one.url, two.url], "c", settings=QUICK) as inbox:
        before = await some(inbox, 3)
        await one.kill()
        ids += await send(two, 3, first=4)
        after = await some(inbox, 3)

    assert ids == [item.id for item in before + after]
    assert [1] * 6 == [item.deliveries for item in before + after]


async def test_the_consumer_gets_what_it_did_not_acknowledge_again_and_drops_what_it_did(stage: Stage) -> None:
    server = stage.server()
    (gateway,) = await stage.start_gateways(1, server.url)
    await send(gateway, 1)
    async with Inbox([gateway.url], "c", settings=QUICK) as inbox:
        (first,) = await some(inbox, 1, do_ack=False)
        (again,) = await some(inbox, 1)
        # A relay that was killed between its two steps copies once more: another entry, the same id.
        for key in server.client().keys("rr:inbox:*"):
            assert b"stream" != server.client().type(key), "acknowledged, and yet there"
        await _deposit_again(gateway, server, again)
        (other,) = await some(inbox, 1)

        assert (first.id, 2) == (again.id, again.deliveries)
        assert "s:phone:2" == other.id
        assert 1 == inbox.repeats


async def _deposit_again(gateway: Gateway, server: object, item: InboxItem) -> None:
    """Through a second session's outbox: the entry of an item that a relay copied twice."""
    client = server.client()  # type: ignore[attr-defined]
    body = json.dumps(dict(item.fields)).encode()
    client.xadd("rr:{default:s}:outbox", {"i": item.id, "f": body})
    await send(gateway, 1, first=2)


async def test_the_consumer_says_why_it_may_not(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    async with Inbox([gateway.url], "c", settings=InboxSettings(max_items=100_000)) as inbox:
        with pytest.raises(InboxError, match="max must be 1 to 100"):
            await some(inbox, 1)


# ---- the command -------------------------------------------------------------------------------------------------


async def inbox_command(gateway: Gateway, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "inbox", *words, "--url", gateway.url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env={**os.environ, "RR_TOKEN": ""},
    )  # fmt: skip


async def said(gateway: Gateway, *words: str) -> list[dict[str, object]]:
    process = await inbox_command(gateway, *words)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert 0 == process.returncode, err
    return [json.loads(line) for line in out.splitlines()]


async def test_the_command_shows_takes_and_puts_back(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    await send(gateway, 2)

    shown = await said(gateway, "take", "--wait", "5", "--lease", "1")
    taken = []
    while len(taken) < 2:  # leases that end in the same second need not end together
        taken += await said(gateway, "take", "--wait", "10", "--ack")

    assert ["s:phone:1", "s:phone:2"] == [line["item"]["id"] for line in shown]  # type: ignore[index]
    assert [2, 2] == [line["deliveries"] for line in taken]
    assert [{"waiting": 0, "dead": 0, "oldest_ms": 0}] == await said(gateway)
    await send(gateway, 1, first=3)
    (item,) = await take(gateway, wait=5)
    await get(gateway, "POST", "/v1/inbox/bury", {"items": [item["receipt"]]})
    (letter,) = await said(gateway, "dead")
    assert [{"redriven": 1}] == await said(gateway, "redrive", str(letter["entry"]))


@pytest.mark.fault
async def test_a_consumer_that_is_killed_before_its_ack_loses_nothing(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url)
    process = await inbox_command(gateway, "tail", "--lease", "2", "--consumer", "doomed")
    assert process.stdout is not None
    ids = await send(gateway, 3)
    lines = [json.loads(await asyncio.wait_for(process.stdout.readline(), 15)) for _ in range(3)]
    process.send_signal(signal.SIGKILL)
    await process.wait()

    items: list[dict[str, object]] = []
    while len(items) < 3:
        items += await take(gateway, "heir", wait=10)
    await ack(gateway, items)

    assert ids == [line["item"]["id"] for line in lines]
    assert ids == [item["item"]["id"] for item in items]  # type: ignore[index]
    assert [2, 2, 2] == [item["deliveries"] for item in items]
