"""The Python SDK's inbox on real gateways: what users say has its effect once, whichever gateway dies."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from relayrouter import Inbox, InboxItem, InputItem, Interrupted, ProducerTiming, RunItem, connect

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.agent.api import send_input
from tests.integration.sdk_python.test_producer_faults import publisher_of

QUICK = ProducerTiming(request_timeout=5.0, backoff_base=0.02, backoff_max=0.2)


def inbox_of(gateways: Sequence[Gateway], consumer: str = "c", lease: float = 3.0) -> Inbox:
    return Inbox([gateway.url for gateway in gateways], consumer=consumer, lease=lease, wait=2.0, timing=QUICK)


async def say(gateway: Gateway, seqs: range) -> None:
    for seq in seqs:
        answer = await send_input(gateway, "s", seq, f"text {seq}")
        assert answer.status == 200, answer.body


@pytest.mark.fault
async def test_each_input_has_its_effect_once_although_its_gateway_dies(stage: Stage) -> None:
    """Killed between two acknowledgements: some were heard and not answered."""
    quick = {"input__rate_per_second": "1000", "input__rate_burst": "1000"}
    gateways = await stage.start_gateways(2, stage.server().url, **quick)
    effects: Counter[str] = Counter()
    async with asyncio.timeout(50), inbox_of(gateways) as inbox:
        await say(gateways[1], range(1, 41))
        async for item in inbox:
            assert isinstance(item, InputItem)
            effects[item.text] += 1
            if len(effects) == 15:
                await asyncio.gather(item.ack(), gateways[0].kill())
            else:
                await item.ack()
            if len(effects) == 40:
                break
        assert (await inbox.lag()).waiting == 0

    assert effects == Counter({f"text {seq}": 1 for seq in range(1, 41)})
    assert list(effects) == [f"text {seq}" for seq in range(1, 41)]


@pytest.mark.fault
async def test_slow_work_keeps_its_item_and_a_dead_consumers_comes_to_another(stage: Stage) -> None:
    """The lease is renewed as long as the consumer lives, over the death of a gateway."""
    gateways = await stage.start_gateways(2, stage.server().url)
    await say(gateways[1], range(1, 2))
    taken: list[InboxItem] = []
    is_taken = asyncio.Event()

    async def work_slowly() -> None:
        async with inbox_of(gateways, "slow") as inbox:
            async for item in inbox:
                taken.append(item)
                is_taken.set()
                await asyncio.get_running_loop().create_future()

    slow = asyncio.create_task(work_slowly())
    await is_taken.wait()
    await gateways[0].kill()
    async with asyncio.timeout(40), inbox_of(gateways[1:], "other") as other:
        before = await other.take(wait=6.0)  # two leases
        slow.cancel()
        await asyncio.wait([slow])
        after: list[InboxItem] = []
        while not after:
            after = await other.take(wait=2.0)
        await other.ack(*after)

    assert before == []
    assert [(item.id, item.deliveries) for item in after] == [(taken[0].id, 2)]


async def test_what_nobody_can_do_is_buried_and_put_back(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url)
    await say(gateway, range(1, 2))
    async with asyncio.timeout(20), inbox_of([gateway]) as inbox:
        async for item in inbox:
            await item.bury("cannot")
            break
        [letter] = await inbox.dead()
        put_back = await inbox.redrive()
        async for item in inbox:
            await item.ack()
            break
        lag = await inbox.lag()

    assert (letter.reason, letter.item["payload"]["text"], put_back) == ("cannot", "text 1", 1)
    assert (lag.waiting, lag.dead) == (0, 0)


async def test_an_interrupt_is_an_item_with_what_the_user_had_seen(stage: Stage) -> None:
    """For an agent that was not there when it happened."""
    gateway = await stage.gateway(stage.server().url)

    async def produce() -> None:
        async with publisher_of([gateway]) as publisher, publisher.run("r") as run:
            await run.write("So far.")
            await asyncio.get_running_loop().create_future()

    producing = asyncio.create_task(produce())
    async with connect(gateway.url, session="s", client="me", from_="start") as reader, asyncio.timeout(20):
        async for message in reader:
            if message.text:
                break
        await reader.interrupt("r", (2, 3))
        async with inbox_of([gateway]) as inbox:
            async for item in inbox:
                await item.ack()
                break
        with pytest.raises(Interrupted):
            await producing

    assert isinstance(item, RunItem)
    assert (item.run, item.reason, item.seen, item.client) == ("r", "interrupt", {"seq": 2, "at": 3}, "me")
