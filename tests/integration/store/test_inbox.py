"""Inbox shards: in order, at least once, with leases; bounded; nothing unacknowledged is dropped (G12)."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from gateway.domain.wire.ids import GatewayId
from gateway.ports import InboxItem, InboxLag
from gateway.ports.inbox import QUEUE_SHARDS_FROM
from gateway.settings import InboxSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import ExchangeStage, exchanging
from tests.integration.store.stage import Ears, keys_without_end


@pytest.fixture(autouse=True)
def _empty(shared_server: Server) -> Iterator[None]:
    """What is left in an inbox has no end; other tests look for keys without one."""
    yield
    shared_server.admin.flushall()


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    async with exchanging(shared_server.address, shared_server.admin) as stage:
        yield stage
    held = [key for key in keys_without_end(shared_server.admin) if not key.startswith("rr:inbox:")]
    assert held == []


async def put(stage: ExchangeStage, *items: str, shard: int = 0) -> None:
    assert await stage.inbox.deposit(stage.tenant, shard, [item.encode() for item in items])


async def take(stage: ExchangeStage, consumer: str = "me", limit: int = 100, lease_ms: int = 60_000) -> list[InboxItem]:
    return await stage.inbox.take(stage.tenant, consumer, limit, lease_ms)


def texts(items: list[InboxItem]) -> list[str]:
    return [item.item.decode() for item in items]


def acks(items: list[InboxItem]) -> list[tuple[int, str]]:
    return [(item.shard, item.entry) for item in items]


def key(stage: ExchangeStage, shard: int = 0) -> str:
    return f"rr:inbox:{{{stage.tenant},{shard}}}"


def end_leases(stage: ExchangeStage, *items: InboxItem) -> None:
    """As if their time had passed; the one of each is where its lease ends."""
    for item in items:
        [pending] = stage.admin.xpending_range(key(stage, item.shard), "agents", item.entry, item.entry, 1)
        stage.admin.xclaim(
            key(stage, item.shard), "agents", pending["consumer"], 0, [item.entry], idle=90_000_000, justid=True
        )


async def test_items_come_in_their_order_and_once(stage: ExchangeStage) -> None:
    await put(stage, "a", "b")
    await put(stage, "c")

    first, second, nothing = await take(stage, limit=2), await take(stage, "you"), await take(stage)

    assert texts(first) == ["a", "b"]
    assert texts(second) == ["c"]
    assert nothing == []
    assert {item.deliveries for item in first + second} == {1}


async def test_an_acknowledged_item_is_gone_and_an_empty_shard_leaves_nothing(stage: ExchangeStage) -> None:
    await put(stage, "a", "b")
    items = await take(stage)

    assert await stage.inbox.ack(stage.tenant, acks(items[:1])) == 1
    waiting, dead, oldest_ms = await stage.inbox.lag(stage.tenant)
    assert (waiting, dead) == (1, 0)
    assert 0 <= oldest_ms < 60_000
    assert await stage.inbox.ack(stage.tenant, acks(items)) == 1
    assert await stage.inbox.ack(stage.tenant, acks(items)) == 0

    assert stage.admin.keys("rr:inbox:*") == []
    assert await stage.inbox.lag(stage.tenant) == InboxLag(0, 0, 0)


async def test_a_lease_that_ended_gives_the_item_to_the_next(stage: ExchangeStage) -> None:
    await put(stage, "a", "b", "c")
    held = await take(stage, limit=2)
    end_leases(stage, held[1])

    again = await take(stage, "you")

    assert [(item.item, item.deliveries) for item in again] == [(b"b", 2), (b"c", 1)]


@pytest.mark.parametrize("lease_ms", [1_000, 3_600_000])
async def test_a_lease_is_as_long_as_its_taker_said(stage: ExchangeStage, lease_ms: int) -> None:
    await put(stage, "a", "b", "c")
    items = await take(stage, lease_ms=lease_ms)

    pending = stage.admin.xpending_range(key(stage), "agents", "-", "+", 10)

    assert len(pending) == len(items) == 3
    for one in pending:
        assert 0 <= one["time_since_delivered"] - (90_000_000 - lease_ms) < 500


async def test_extending_begins_the_lease_anew_for_its_holder_only(stage: ExchangeStage) -> None:
    await put(stage, "a", "b")
    mine = await take(stage, limit=1)
    theirs = await take(stage, "you")
    end_leases(stage, *mine, *theirs)

    assert await stage.inbox.extend(stage.tenant, "me", acks(mine + theirs)) == 1

    assert texts(await take(stage, "third")) == ["b"]


async def test_an_item_taken_over_is_not_extended_by_who_had_it(stage: ExchangeStage) -> None:
    await put(stage, "a")
    mine = await take(stage)
    end_leases(stage, *mine)
    await take(stage, "you")

    assert await stage.inbox.extend(stage.tenant, "me", acks(mine)) == 0
    assert await stage.inbox.extend(stage.tenant, "you", acks(mine)) == 1


async def test_what_is_delivered_too_often_becomes_a_dead_letter(shared_server: Server) -> None:
    settings = Settings(inbox=InboxSettings(max_deliveries=3))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        await put(stage, "poison", "fine")
        seen = []
        for _ in range(4):
            items = await take(stage)
            seen.append([(item.item, item.deliveries) for item in items])
            end_leases(stage, *items)

        assert [batch[0] for batch in seen[:3]] == [(b"poison", 1), (b"poison", 2), (b"poison", 3)]
        assert seen[3] == []
        dead = await stage.inbox.dead(stage.tenant, 10)
        assert [(item, reason) for _, item, reason in dead] == [(b"poison", "deliveries"), (b"fine", "deliveries")]
        assert (await stage.inbox.lag(stage.tenant))[:2] == (0, 2)


async def test_dead_letters_are_listed_in_order_and_driven_again(stage: ExchangeStage) -> None:
    await put(stage, "a", shard=1)
    await put(stage, "b", shard=3)
    await put(stage, "c", shard=1)
    for item in sorted(await take(stage), key=lambda item: item.item):
        assert await stage.inbox.bury(stage.tenant, acks([item]), "refused by the webhook") == 1

    dead = await stage.inbox.dead(stage.tenant, 2)
    assert [letter[1:] for letter in dead] == [(b"a", "refused by the webhook"), (b"b", "refused by the webhook")]
    assert await stage.inbox.redrive(stage.tenant, [dead[0][0], "9/1-0", "nonsense", "1/x"]) == 1
    assert texts(await take(stage)) == ["a"]


async def test_all_dead_letters_are_driven_again(stage: ExchangeStage) -> None:
    for shard in (0, 2):
        await put(stage, *[f"{shard}.{place}" for place in range(130)], shard=shard)
    items = await take(stage, limit=1000)
    assert await stage.inbox.bury(stage.tenant, acks(items), "x") == 260
    assert (await stage.inbox.lag(stage.tenant))[:2] == (0, 260)

    assert await stage.inbox.redrive(stage.tenant, []) == 260

    again = await take(stage, limit=1000)
    assert sorted(texts(again)) == sorted(texts(items))
    assert {item.deliveries for item in again} == {1}
    await stage.inbox.ack(stage.tenant, acks(again))
    assert stage.admin.keys("rr:inbox:*") == []


async def test_without_room_for_dead_letters_nothing_is_dropped(shared_server: Server) -> None:
    settings = Settings(inbox=InboxSettings(max_dead=1, max_deliveries=1))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        await put(stage, "a", "b")
        end_leases(stage, *await take(stage))

        again = await take(stage)

        assert [(item.item, item.deliveries) for item in again] == [(b"b", 2)]
        assert await stage.inbox.bury(stage.tenant, acks(again), "x") == 0


@pytest.mark.parametrize(("held", "more", "fits"), [(3, 1, True), (3, 2, False), (4, 1, False), (0, 5, True)])
async def test_a_shard_holds_so_many_items(shared_server: Server, held: int, more: int, fits: bool) -> None:
    """At most 4; what is larger alone passes an empty shard, or it would never pass."""
    settings = Settings(inbox=InboxSettings(max_items=4))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        if held:
            await put(stage, *["x"] * held)
            await take(stage)  # what is leased counts

        assert await stage.inbox.deposit(stage.tenant, 0, [b"y"] * more) == fits
        assert (await stage.inbox.lag(stage.tenant)).waiting == held + (more if fits else 0)


@pytest.mark.parametrize(("size", "fits"), [(9_999, True), (10_000, True), (10_001, False)])
async def test_a_shard_holds_so_many_bytes(shared_server: Server, size: int, fits: bool) -> None:
    settings = Settings(inbox=InboxSettings(max_bytes=65_536))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        await put(stage, "x" * 20_000, "y" * 20_000, "z" * 35_536)
        [first, *_] = await take(stage, limit=1)
        await stage.inbox.ack(stage.tenant, acks([first]))

        assert await stage.inbox.deposit(stage.tenant, 0, [b"w" * size]) == fits


async def test_a_waiting_gateway_is_told_of_the_next_deposit(stage: ExchangeStage, shared_server: Server) -> None:
    ears = Ears(shared_server.admin, "gw-a", "gw-b")
    try:
        waits = await stage.inbox.take(stage.tenant, "me", 10, 1000, GatewayId("gw-a"))
        assert waits == []

        await put(stage, "a", shard=2)
        heard = ears.heard()
        await put(stage, "b", shard=2)

        assert heard == [["1w", stage.tenant]]
        assert ears.heard() == []
        assert texts(await stage.inbox.take(stage.tenant, "me", 10, 1000, GatewayId("gw-a"))) == ["a", "b"]
    finally:
        ears.close()


async def test_no_shard_starves(stage: ExchangeStage) -> None:
    for shard in range(stage.shards):
        await put(stage, *[f"{shard}"] * 8, shard=shard)

    firsts = [texts(await take(stage, limit=2))[0] for _ in range(stage.shards)]

    assert sorted(firsts) == ["0", "1", "2", "3"]


async def test_consumers_that_hold_nothing_are_forgotten(stage: ExchangeStage) -> None:
    await put(stage, *"abcdefgh")
    await take(stage, "stays", limit=1)
    for number in range(20):
        items = await take(stage, f"c{number}", limit=1)
        await stage.inbox.ack(stage.tenant, acks(items))

    consumers = [consumer["name"] for consumer in stage.admin.xinfo_consumers(key(stage), "agents")]

    assert consumers == ["60000 stays"]


async def test_entries_from_outside_do_no_harm(stage: ExchangeStage) -> None:
    await put(stage, "a")

    assert await stage.inbox.ack(stage.tenant, [(0, "x"), (0, "1-1"), (99, "1-1"), (-1, "1-1"), (0, "")]) == 0
    assert await stage.inbox.extend(stage.tenant, "me", [(1, "5-5"), (0, "1-1")]) == 0
    assert await stage.inbox.bury(stage.tenant, [(0, "1-1"), (1, "5-5")], "x") == 0
    assert texts(await take(stage)) == ["a"]


async def test_tenants_do_not_meet(stage: ExchangeStage, ears: Callable[..., Any]) -> None:
    await put(stage, "a")

    other = type(stage.tenant)("another tenant")

    assert await stage.inbox.take(other, "me", 10, 1000) == []
    assert await stage.inbox.lag(other) == InboxLag(0, 0, 0)


async def test_a_tenant_with_webhooks_has_its_shards_twice_and_others_have_not(stage: ExchangeStage) -> None:
    both = stage.with_webhooks()
    await put(stage, "theirs", shard=0)
    await put(stage, "ours", shard=QUEUE_SHARDS_FROM)

    ours = await both.take(stage.tenant, "me", 100, 60_000)
    theirs = await both.take(stage.tenant, "hook", 100, 60_000, for_webhooks=True)
    assert (["ours"], ["theirs"]) == (texts(ours), texts(theirs))
    assert 1 == await both.extend(stage.tenant, "me", [(ours[0].shard, ours[0].entry)])
    assert 2 == (await both.lag(stage.tenant)).waiting
    assert 1 == await both.bury(stage.tenant, [(ours[0].shard, ours[0].entry)], "no")
    ((entry, item, _),) = await both.dead(stage.tenant, 10)
    assert (b"ours", 1) == (item, await both.redrive(stage.tenant, [entry]))
    (again,) = await both.take(stage.tenant, "me", 100, 60_000)
    places = [(it.shard, it.entry) for it in (again, *theirs)]
    assert (QUEUE_SHARDS_FROM, 2) == (again.shard, await both.ack(stage.tenant, places))
    assert InboxLag(0, 0, 0) == await both.lag(stage.tenant)
