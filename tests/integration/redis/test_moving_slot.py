"""A slot that moves key by key, as before Valkey 9: each script is refused whole, or has done all of it (R08, R10)."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.adapters.resp.slots import slot_of
from gateway.app.redis_side import RedisSide
from gateway.domain.wire.ids import ConnectionId, ProducerName, RunId
from gateway.domain.wire.own_identity import run_writer
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Answer,
    AppendRequest,
    AskId,
    AskStatus,
    Claimed,
    ClaimRequest,
    EndedBy,
    InputRequest,
    OpenAsk,
    OpenRun,
    Order,
    ProducerRef,
    RunWriter,
    StopRun,
    StoreUnavailable,
)
from tests.integration.redis.cluster import cluster_options
from tests.integration.redis.servers_by_version import Found
from tests.integration.redis.test_versions import CLIENT, GATEWAY, REF, USER, connected, say
from tests.integration.resp.servers import Server

SECONDS = 20.0
PREFIX = "rr:{" + REF.key.decode() + "}:"
RUN = RunId("r")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Of one cluster; the first one has all slots."""
    with ExitStack() as stack:
        both = []
        for _ in range(2):
            server = Server(tmp_path_factory.mktemp("node"), "--appendonly", "no", *cluster_options(5_000))
            server.start()
            stack.callback(server.end)
            both.append(server)
        source, target = both
        source.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        bus_port = target.admin.config_get("cluster-port")["cluster-port"]
        source.admin.execute_command("CLUSTER", "MEET", "127.0.0.1", target.port, bus_port)
        deadline = time.monotonic() + SECONDS
        while not all(_is_well(*pair) for pair in ((source, target), (target, source))):
            assert time.monotonic() < deadline, "the two do not make a cluster"
            time.sleep(0.02)
        yield source, target


def _is_well(server: Server, other: Server) -> bool:
    is_known = other.admin.execute_command("CLUSTER", "MYID") in str(server.admin.execute_command("CLUSTER", "NODES"))
    return is_known and "cluster_state:ok" in str(server.admin.execute_command("CLUSTER", "INFO"))


class Scene:
    """A session that has every key that a session can have, except the thinking of its run."""

    def __init__(self, side: RedisSide, source: Server, target: Server) -> None:
        self.side, self.source, self.target = side, source, target
        self.slot = slot_of((PREFIX + "meta").encode())

    def now_ms(self) -> int:
        seconds, us = self.source.admin.time()
        return int(seconds) * 1000 + int(us) // 1000

    async def fill(self) -> None:
        side, due = self.side, self.now_ms()
        named = ProducerRef(ProducerName("~own"), 1, registers=True)
        push = ProducerRef(ProducerName("/push"), 0, registers=True)
        await side.store.append(AppendRequest(REF, (say("a"),), named, 1, idempotency_key="k", owner=USER, due_ms=due))
        await side.store.append(AppendRequest(REF, (say("b"),), named, 2, kept_ms=60_000, due_ms=due))
        await side.store.append(AppendRequest(REF, (say("d"),), push, 2, order=Order.CONTIGUOUS, due_ms=due))
        late = make_item({"kind": "delta", "run": "r4", "text": "e"})
        await side.store.append(AppendRequest(REF, (late,), push, 3, order=Order.CONTIGUOUS, due_ms=due))
        claimed = await side.store.claim(
            ClaimRequest(REF, GATEWAY, ConnectionId("c"), CLIENT, may_create=True, user=USER)
        )
        assert isinstance(claimed, Claimed)
        await side.exchange.accept_input(
            InputRequest(REF, CLIENT, USER, 1, "d" * 20, b'{"kind":"echo"', b"{}", "i", due_ms=due)
        )
        opened = await side.runs.open_run(_open(RUN, due))
        assert isinstance(opened, RunWriter)
        writer = ProducerRef(run_writer(RUN), opened.epoch)
        text = make_item({"kind": "delta", "run": RUN, "text": "hello"})
        await side.store.append(AppendRequest(REF, (text,), writer, 1, due_ms=due))
        self.abandon()
        self.be_overdue()
        there = {key.removeprefix(PREFIX) for key in self.keys()}
        assert there == {"meta", "log", "clients", "seen", "kept", "pending", "outbox", "routes", "gws", "text:r"}

    def abandon(self) -> None:
        """The run's lease is over: the next sweep ends it."""
        record = self.source.admin.hget(PREFIX + "meta", "r:r").split(" ")
        self.source.admin.hset(PREFIX + "meta", "r:r", " ".join([*record[:2], "1", *record[3:]]))

    def be_overdue(self) -> None:
        """Whatever passes by lets go what waits, and with it a run begins that its caller knows nothing of."""
        lines = self.source.admin.hget(PREFIX + "pending", "#").split("\n")
        aged = [" ".join([number, "1", *rest]) for number, _, *rest in (line.split(" ") for line in lines)]
        self.source.admin.hset(PREFIX + "pending", "#", "\n".join(aged))

    def keys(self) -> dict[str, Any]:
        """As they are stored."""
        names = self.source.admin.execute_command("CLUSTER", "GETKEYSINSLOT", self.slot, 100)
        return {name: self.source.admin.execute_command("DUMP", name, NEVER_DECODE=True) for name in names}

    def move(self) -> None:
        """Begun, and no key is there yet."""
        source, target = self.source.admin, self.target.admin
        target.execute_command("CLUSTER", "SETSLOT", self.slot, "IMPORTING", source.execute_command("CLUSTER", "MYID"))
        source.execute_command("CLUSTER", "SETSLOT", self.slot, "MIGRATING", target.execute_command("CLUSTER", "MYID"))

    def stay(self) -> None:
        for server in (self.source, self.target):
            server.admin.execute_command("CLUSTER", "SETSLOT", self.slot, "STABLE")
        self.source.admin.flushall()


def _open(run: RunId, due_ms: int) -> OpenRun:
    return OpenRun(REF, run, b'{"kind":"run_start","run":"' + run.encode() + b'"', True, True, USER, due_ms, GATEWAY)


@pytest.fixture
async def scene(servers: tuple[Server, Server]) -> AsyncIterator[Scene]:
    async with connected(Found("valkey", "127.0.0.1", servers[0].port)) as side:
        scene = Scene(side, *servers)
        await scene.fill()
        scene.move()
        yield scene
        scene.stay()


CALLS: dict[str, Callable[[RedisSide, int], Awaitable[object]]] = {
    "a run begins": lambda side, due: side.runs.open_run(_open(RunId("r2"), due)),
    "a run is stopped": lambda side, due: side.runs.stop_run(StopRun(REF, RUN, EndedBy.CANCELLED, due_ms=due)),
    "what is overdue ends": lambda side, _: side.exchange.sweep(REF),
    "what waited is due": lambda side, due: side.store.append(
        AppendRequest(
            REF,
            (make_item({"kind": "delta", "run": "r3", "text": "c"}),),
            ProducerRef(ProducerName("/push"), 0, registers=True),
            1,
            order=Order.CONTIGUOUS,
            due_ms=due,
        )
    ),
    "somebody speaks": lambda side, due: side.exchange.accept_input(
        InputRequest(REF, CLIENT, USER, 2, "d" * 20, b'{"kind":"echo"', b"{}", "i", due_ms=due)
    ),
    "an ask is opened": lambda side, due: side.exchange.open_ask(
        OpenAsk(REF, AskId("a"), None, b'{"kind":"ask"', b"{}", 60_000, due_ms=due)
    ),
    "an ask is answered": lambda side, due: side.exchange.resolve_ask(
        Answer(REF, AskId("a"), AskStatus.ANSWERED, b'{"kind":"ask_resolved"', b"{}", "ask:a", due)
    ),
    "the session is deleted": lambda side, _: side.store.delete(REF),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_nothing_is_done_by_half(scene: Scene, call: Callable[[RedisSide, int], Awaitable[object]]) -> None:
    before = scene.keys()

    with pytest.raises(StoreUnavailable) as refusal:
        await call(scene.side, scene.now_ms())

    assert not refusal.value.outcome_unknown, refusal.value
    assert scene.keys() == before
