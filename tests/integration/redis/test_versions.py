"""Servers of other makes and versions than the one of the `embedded` extra: every script runs, a gateway works."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.resp import Client
from gateway.app.redis_side import RedisSide
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import (
    ClientId,
    ConnectionId,
    GatewayId,
    ProducerName,
    RunId,
    SessionId,
    SessionRef,
    Tenant,
    UserId,
)
from gateway.domain.wire.own_identity import run_writer
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Answer,
    Appended,
    AppendRequest,
    AskId,
    AskStatus,
    Claimed,
    ClaimRequest,
    EndedBy,
    GatewayRecord,
    InputAccepted,
    InputRequest,
    OpenAsk,
    OpenRun,
    Order,
    ProducerRef,
    Registered,
    RenewClient,
    RenewRequest,
    RunProgress,
    RunWriter,
    StopRun,
    Track,
)
from gateway.settings import AppendSettings, InboxSettings, RedisSettings, Settings
from loadtest.publisher import delta
from loadtest.scenes import flawless, seat
from loadtest.stage import Stage
from tests.integration.redis.servers_by_version import KINDS, PROGRAM, Found, NotHere, follow, start

TENANT, USER, CLIENT, GATEWAY = Tenant("t"), UserId("ann"), ClientId("phone"), GatewayId("gw-a")
REF = SessionRef(TENANT, SessionId("s"))
BOUND_SECONDS = 30.0


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Found]:
    with ExitStack() as stack:
        try:
            found = start(request.param, tmp_path_factory.mktemp("server"), stack)
        except NotHere as exc:
            pytest.skip(f"{request.param}: {exc}")
        yield found


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the scripts that were called."""
    names: set[str] = set()
    evaluate = Client.evaluate

    def noting(self: Client, script: Any, *args: Any, **more: Any) -> Any:
        names.add(script.name)
        return evaluate(self, script, *args, **more)

    monkeypatch.setattr(Client, "evaluate", noting)
    return names


@asynccontextmanager
async def connected(found: Found, min_replicas: int = 0) -> AsyncIterator[RedisSide]:
    settings = Settings(
        redis=RedisSettings(url=found.url),  # type: ignore[arg-type]
        append=AppendSettings(min_replicas=min_replicas, replica_wait_seconds=1),
        inbox=InboxSettings(shards=1, max_deliveries=1),
    )
    side = RedisSide(settings, Measures(), random.Random(1), lambda is_up, reason: None)
    tasks = [asyncio.create_task(life, name=name) for name, life in side.lives()]
    try:
        async with asyncio.timeout(BOUND_SECONDS):
            while not side.appends.is_up or not side.reads.is_up:
                await asyncio.sleep(0.01)
        yield side
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Tour:
    """Ways through the scripts; what each answers is judged as little as shows that it worked."""

    def __init__(self, side: RedisSide, admin: Any) -> None:
        self.side, self.store, self.runs, self.exchange = side, side.store, side.runs, side.exchange
        self.admin = admin

    def now_ms(self) -> int:
        seconds, us = self.admin.time()
        return int(seconds) * 1000 + int(us) // 1000

    async def put(self, producer: ProducerRef, number: int, *items: Item, **more: Any) -> Appended:
        outcome = await self.store.append(
            AppendRequest(REF, items, producer, number, **({"due_ms": self.now_ms()} | more))
        )
        assert isinstance(outcome, Appended), outcome
        return outcome

    async def log(self) -> None:
        """Producers, appends of every kind, order, kept items."""
        registered = await self.store.register_producer(REF, ProducerName("p"), USER)
        assert isinstance(registered, Registered)
        producer = ProducerRef(ProducerName("p"), registered.epoch)
        assert (await self.put(producer, 1, say("a"), say("b"))).head == 2
        again = await self.put(producer, 1, say("a"), say("b"))
        assert [result.duplicate for result in again.results] == [True, True]
        keyed = ProducerRef(ProducerName("~own"), 1, registers=True)
        assert (await self.put(keyed, 1, say("c"), idempotency_key="k", owner=USER)).head == 3
        assert (await self.put(keyed, 2, say("c"), idempotency_key="k")).results[0].seq == 3
        push = ProducerRef(ProducerName("/push"), 0, registers=True)
        waits = await self.put(push, 2, say("late"), order=Order.CONTIGUOUS)
        assert waits.results[0].pending
        assert (await self.put(push, 1, say("first"), order=Order.CONTIGUOUS)).head == 5
        assert (await self.put(keyed, 3, say("kept"), kept_ms=60_000)).kept_until_ms is not None

    async def run(self) -> None:
        """Begun, written, read, kept alive, stopped."""
        opened = await self.runs.open_run(
            OpenRun(REF, RunId("r"), b'{"kind":"run_start","run":"r"', True, True, USER, self.now_ms(), GATEWAY)
        )
        assert isinstance(opened, RunWriter)
        writer = ProducerRef(run_writer(RunId("r")), opened.epoch)
        text = make_item({"kind": "delta", "run": "r", "text": "héllo"})
        await self.put(writer, 1, text, progress=RunProgress(RunId("r"), 6, b"state", GATEWAY))
        assert await self.runs.keep_alive(REF, RunId("r"), opened.epoch) is None
        assert [info.text_bytes for info in await self.runs.runs(REF)] == [6]
        assert (await self.runs.run_text(REF, RunId("r"), Track.TEXT, 0, 6, 100)).text == "héllo".encode()
        stopped = await self.runs.stop_run(StopRun(REF, RunId("r"), EndedBy.INTERRUPTED, client=CLIENT))
        assert getattr(stopped, "is_new", False)
        assert await self.runs.snapshot(REF) is not None

    async def routes(self) -> None:
        """Claimed, settled, renewed, read, given back."""
        request = ClaimRequest(REF, GATEWAY, ConnectionId("c1"), CLIENT, may_create=True, user=USER, from_start=True)
        claimed = await self.store.claim(request)
        assert isinstance(claimed, Claimed)
        assert claimed.page is not None
        assert [entry.seq for entry in claimed.page.entries] == list(range(1, claimed.log.head + 1))
        await self.store.settle(REF, CLIENT, ConnectionId("c1"), claimed.generation)
        me = RenewClient(CLIENT, ConnectionId("c1"), claimed.generation, claimed.log.line, 1)
        [renewed] = await self.store.renew([RenewRequest(REF, GATEWAY, (me,))])
        [head] = await self.store.heads([REF])
        page = await self.store.page(REF, 2, 1_000_000)
        info = await self.store.info(REF)
        assert page is not None
        assert info is not None
        assert {renewed.head, head.head, page.log.head, info.log.head} == {claimed.log.head}  # type: ignore[union-attr]
        await self.store.release(REF, GATEWAY, me, was_live=True)

    async def agent(self) -> None:
        """Input, asks, deadlines, sweep, the inbox."""
        accepted = await self.exchange.accept_input(
            InputRequest(REF, CLIENT, USER, 1, "d" * 20, b'{"kind":"echo"', b"{}", "i", due_ms=self.now_ms())
        )
        assert isinstance(accepted, InputAccepted)
        opened = await self.exchange.open_ask(
            OpenAsk(REF, AskId("a"), None, b'{"kind":"ask"', b"{}", 60_000, due_ms=self.now_ms())
        )
        assert getattr(opened, "is_new", False)
        assert (await self.exchange.ask(REF, AskId("a"))) is not None
        answer = Answer(REF, AskId("a"), AskStatus.ANSWERED, b'{"kind":"ask_resolved"', b"{}", "ask:a", self.now_ms())
        assert getattr(await self.exchange.resolve_ask(answer), "is_winner", False)
        await self.side.deadlines.note(REF, -1)
        for shard in range(16):
            for due in await self.side.deadlines.due(shard, 10):
                swept = await self.exchange.sweep(REF)
                assert swept.has_outbox
                await self.side.deadlines.settle(due, None)
        items = await self.exchange.outbox(REF, 10)
        await self.exchange.relayed(REF, [item.entry for item in items])

    async def inbox(self) -> None:
        inbox = self.side.inbox
        assert await inbox.deposit(TENANT, 0, [b"1", b"2", b"3"])
        [first, second, third] = await inbox.take(TENANT, "me", 10, 60_000)
        assert await inbox.extend(TENANT, "me", [(first.shard, first.entry)]) == 1
        assert await inbox.ack(TENANT, [(first.shard, first.entry)]) == 1
        assert await inbox.bury(TENANT, [(second.shard, second.entry), (third.shard, third.entry)], "test") == 2
        assert len(await inbox.dead(TENANT, 10)) == 2
        assert await inbox.redrive(TENANT, []) == 2
        assert (await inbox.lag(TENANT)).waiting == 2

    async def directory(self) -> None:
        directory = self.side.directory
        record = GatewayRecord(GATEWAY, "http://127.0.0.1:1", "0", "serving", 1, 1)
        await directory.announce(record, 10)
        await directory.note_user_session(TENANT, USER, REF.session, 10)
        await directory.revoke(TENANT, "user", "bob", 1, 60)
        await directory.put_ticket("t", b"claims", 10)
        assert await directory.take_ticket("t") == b"claims"
        assert await directory.gateways() == [record]
        assert await directory.user_sessions(TENANT, USER) == [REF.session]
        assert (await directory.revocations(TENANT)).users == {"bob": 1}

    async def whole(self) -> None:
        await self.log()
        await self.run()
        await self.routes()
        await self.agent()
        await self.inbox()
        await self.directory()
        assert await self.store.delete(REF)


def say(text: str) -> Item:
    return make_item({"kind": "data", "text": text})


async def test_every_script_runs(server: Found, called: set[str]) -> None:
    """Scripts of every kind do what they are for, and none is left out (but those of replicas)."""
    async with connected(server) as side:
        with server.admin() as admin:
            admin.flushall()
            await Tour(side, admin).whole()

    assert {*StoreScripts._fields, *ExchangeScripts._fields} - called == {"mark", "reveal"}


async def test_a_gateway_carries_messages(server: Found, stage: Stage) -> None:
    """A producer and readers: everything comes in order and once."""
    with server.admin() as admin:
        admin.flushall()
    gateways = await stage.start_gateways(1, server.url)
    publisher = stage.publisher(gateways, "s", name="p")
    names = await seat(stage, "s", gateways, 2)

    for _ in range(10):
        await publisher.publish(*(delta("r", stage.rng) for _ in range(3)))

    await flawless(stage, publisher.ledger, names)


async def test_appends_wait_for_a_replica(
    server: Found, called: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`append.min_replicas`: the same tour, with rounds."""
    if server.kind != PROGRAM:
        pytest.skip(f"{server.kind}: a container has no replica here")
    with ExitStack() as stack, server.admin() as admin:
        admin.flushall()
        replica = start(PROGRAM, tmp_path_factory.mktemp("replica"), stack)
        follow(replica, server)
        async with connected(server, min_replicas=1) as side:
            await Tour(side, admin).whole()
            with replica.admin() as other:
                assert other.exists(f"rr:{{{REF.key.decode()}}}:meta")

    assert {*StoreScripts._fields, *ExchangeScripts._fields} <= called
