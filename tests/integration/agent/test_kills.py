"""A gateway is killed at each step between a client's input and the agent: every accepted item arrives (G12)."""

import asyncio
import json
import random
import time
from collections.abc import Callable

import pytest

from loadtest.faults import Predicate
from loadtest.plain_http import NoAnswer
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.agent.api import consume, find_ask, listen, open_ask, send_input
from tests.integration.agent.receiver import Receiver

pytestmark = pytest.mark.fault


def _is_input(text: str) -> Predicate:
    """The script that accepts this text."""
    return lambda command: b'"kind":"input"' in command and b'"kind":"echo"' in command and text.encode() in command


def _is_deposit(text: str) -> Predicate:
    return lambda command: b"rr:inbox:" in command and b'"kind":"input"' in command and text.encode() in command


def _is_read(_: str) -> Predicate:
    return lambda command: b"XRANGE" in command and b":outbox" in command


def _is_removal(_: str) -> Predicate:
    return lambda command: b"XDEL" in command and b":outbox" in command


@pytest.mark.parametrize("step", [_is_input, _is_read, _is_deposit, _is_removal])
async def test_a_gateway_killed_at_any_step_loses_nothing_that_it_accepted(
    stage: Stage, step: Callable[[str], Predicate]
) -> None:
    server = stage.server()
    proxy = await stage.proxy(server)
    doomed, other = await asyncio.gather(stage.gateway(proxy.url), stage.gateway(server.url))
    for seq in (1, 2):
        assert 200 == (await send_input(doomed, "s", seq, f"text {seq}")).status
    await consume(other, 2, 15)

    proxy.lose_reply(step("text 3"))
    sending = asyncio.create_task(_send(doomed, 3))
    await asyncio.wait_for(proxy.hit.wait(), 10)
    await doomed.kill()
    was_accepted = await sending
    # What was not answered is sent again, as a client does; what was accepted is not.
    for seq in (3, 4) if not was_accepted else (4,):
        answer = await send_input(other, "s", seq, f"text {seq}")
        assert 200 == answer.status, answer.body
    items = await consume(other, 2, 25)

    assert ["s:phone:3", "s:phone:4"] == list(dict.fromkeys(item["id"] for item in items if item["id"][-1] in "34"))
    assert all(item["payload"]["text"] == f"text {item['id'][-1]}" for item in items)
    assert step is _is_input or was_accepted
    await _nothing_is_left(server)


async def _send(gateway: Gateway, seq: int) -> bool:
    try:
        return (await send_input(gateway, "s", seq, f"text {seq}", timeout_seconds=8)).status == 200
    except (NoAnswer, TimeoutError):
        return False


async def _nothing_is_left(server: object) -> None:
    """Outboxes become empty: by whoever relayed, or by the sweep."""
    deadline = time.monotonic() + 15
    with server.client() as client:  # type: ignore[attr-defined]
        while any(client.xlen(key) for key in client.keys("rr:{*}:outbox")):
            assert time.monotonic() < deadline, client.keys("rr:*")
            await asyncio.sleep(0.1)


async def test_gateways_killed_at_random_moments_lose_nothing(stage: Stage) -> None:
    server = stage.server()
    gateways = await stage.start_gateways(3, server.url)
    rng = random.Random(stage.seed)
    victims = gateways[:2]

    async def talk(session: str) -> None:
        for seq in range(1, 31):
            place = rng.randrange(3)
            for _ in range(40):
                gateway = gateways[place]
                place = (place + 1) % 3
                try:
                    answer = await send_input(gateway, session, seq, f"{session} {seq}", timeout_seconds=5)
                except (NoAnswer, TimeoutError):
                    continue
                if answer.status == 200:
                    break
                assert answer.status in (429, 503), answer.body
                await asyncio.sleep(0.2)
            else:
                raise AssertionError(f"nobody took {session} {seq}")
            await asyncio.sleep(0.02)

    async def kill() -> None:
        for victim in victims:
            await asyncio.sleep(rng.uniform(0.3, 1.2))
            await victim.kill()

    sessions = [f"s{number}" for number in range(4)]
    async with asyncio.TaskGroup() as group:
        group.create_task(kill())
        for session in sessions:
            group.create_task(talk(session))
    items = await consume(gateways[2], 120, 40)

    for session in sessions:
        ids = list(dict.fromkeys(item["id"] for item in items if item["session"] == session))
        assert [f"{session}:phone:{seq}" for seq in range(1, 31)] == ids


async def test_two_sweepers_at_once_do_no_harm(stage: Stage) -> None:
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    sessions = [f"s{number}" for number in range(30)]
    for place, session in enumerate(sessions):
        await open_ask(gateways[place % 2], session, "a1", expires_in=4)
    # Both sleep over the deadline and over the two seconds that one leaves to the other, then both go at once.
    for gateway in gateways:
        gateway.freeze()
    await asyncio.sleep(7)
    for gateway in gateways:
        gateway.thaw()

    items = await consume(gateways[0], len(sessions), 20)

    assert {f"ask:{session}:a1" for session in sessions} == {item["id"] for item in items}
    assert {"expired"} == {item["kind"] for item in items}
    with server.client() as client:
        for session in sessions:
            entries = client.xrange(f"rr:{{default:{session}}}:log")
            resolved = [fields for _, fields in entries if b'"ask_resolved"' in b"".join(fields.values())]
            assert 1 == len(resolved), session
    assert "expired" == (await find_ask(gateways[1], sessions[0], "a1"))["status"]


async def test_a_run_whose_producer_was_killed_is_abandoned_and_the_agent_is_told(stage: Stage) -> None:
    (gateway,) = await stage.start_gateways(1, stage.server().url, runs__lease_seconds="3")
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(
        b"POST /v1/sessions/s/runs/r7/stream?dialect=text HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Type: text/plain\r\n\r\n5\r\nhello\r\n"
    )
    await writer.drain()
    await asyncio.sleep(0.5)
    writer.transport.abort()
    del reader

    frames = await listen(gateway, "s", "phone", "run_end")
    (item,) = await consume(gateway, 1, 20)

    assert ("abandoned", "r7") == (frames[-1]["payload"]["reason"], frames[-1]["payload"]["run"])
    assert ("run:s:r7:abandoned", "abandoned", "r7") == (item["id"], item["kind"], item["run"])
    assert "hello" == "".join(frame["payload"].get("text", "") for frame in frames if frame["type"] == "text")


async def test_a_webhook_receiver_that_is_down_for_a_while_loses_nothing(stage: Stage) -> None:
    receiver = Receiver()
    port = receiver.reserve()
    hooks = [{"name": "h", "url": f"http://127.0.0.1:{port}/hook", "secret": "s" * 32, "allow_private": True}]
    settings = {"webhooks__receivers": json.dumps(hooks), "webhooks__max_backoff_seconds": "1"}
    server = stage.server()
    gateways = [await stage.gateway(server.url, **settings) for _ in range(2)]
    for seq in range(1, 6):
        answer = await send_input(gateways[seq % 2], "s", seq, f"text {seq}")
        assert 200 == answer.status
    await asyncio.sleep(3)
    async with receiver.listening():
        await receiver.wait_for(5, 20)
        # Who sends dies: the other one goes on.
        sent = [await gateway.metric("webhook_posts_total", outcome="ok") for gateway in gateways]
        assert 0 == min(sent) < max(sent)
        heir = gateways[sent.index(0)]
        await gateways[1 - sent.index(0)].kill()
        for seq in range(6, 11):
            assert 200 == (await send_input(heir, "s", seq, f"text {seq}")).status
        await receiver.wait_for(10, 50)

    assert [f"s:phone:{seq}" for seq in range(1, 11)] == receiver.ids
    assert receiver.all_signed
    assert 0 == await heir.metric("webhook_items_total", outcome="dead")
