"""Appends whose answer, script, memory or connection is taken away: each message once, in its order (G5, G9)."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from loadtest.faults import Links, RedisProxy
from loadtest.processes import Gateway, Server
from loadtest.publisher import Ledger, Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless

pytestmark = [pytest.mark.fault, pytest.mark.asyncio(loop_scope="module")]


class Scene:
    """Two gateways that reach the server through one proxy."""

    def __init__(self, server: Server, proxy: RedisProxy, gateways: list[Gateway]) -> None:
        self.server = server
        self.proxy = proxy
        self.gateways = gateways

    async def metric(self, name: str, **labels: str) -> float:
        return sum([await gateway.metric(name, **labels) for gateway in self.gateways])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_scene(shared_stage: Stage) -> Scene:
    server = shared_stage.server()
    proxy = await shared_stage.proxy(server)
    # A call is given up early, so that what a frozen server does later is late.
    settings = {"redis__deadline_seconds": "2", "redis__call_timeout_seconds": "0.8", "redis__backoff_max_ms": "300"}
    return Scene(server, proxy, await shared_stage.start_gateways(2, proxy.url, **settings))


@pytest_asyncio.fixture(loop_scope="module")
async def scene(standing_scene: Scene) -> AsyncIterator[Scene]:
    """Whole again after each test."""
    standing_scene.proxy.heal()
    yield standing_scene
    standing_scene.proxy.heal()
    for gateway in standing_scene.gateways:
        if not gateway.is_running:
            await gateway.start()


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """One of the test's own."""
    return str(request.node.name)


@pytest.fixture
def stage(shared_stage: Stage, seed: int) -> Stage:
    shared_stage.rng = random.Random(seed)
    return shared_stage


def _is_append(mark: bytes) -> Any:
    """The EVALSHA of an append that carries this text."""
    return lambda command: b"EVALSHA" in command and mark in command


@pytest.mark.parametrize("name", ["p", ""], ids=["producer", "anonymous"])
async def test_lost_reply_is_neither_lost_nor_doubled(stage: Stage, scene: Scene, session: str, name: str) -> None:
    """The append took effect, nobody heard; those before and after it are in flight at the same time."""
    ledger = Ledger()
    publishers = [stage.publisher(scene.gateways, session, ledger, name=name and f"{name}{n}") for n in range(4)]
    names = await seat(stage, session, scene.gateways, 2)

    async def publish(publisher: Publisher, number: int) -> None:
        for count in range(20):
            payload = delta(f"r{number}", stage.rng)
            if count == 4 * number + 3:
                payload["text"] = f"mark-{number}"
                scene.proxy.lose_reply(_is_append(payload["text"].encode()))
            await publisher.publish(payload)

    await asyncio.gather(*(publish(publisher, number) for number, publisher in enumerate(publishers)))

    await flawless(stage, ledger, names)
    assert scene.proxy.counts["replies_lost"] == 4
    assert ledger.head == 80
    assert await scene.metric("append_retries_total") >= 4


async def test_repeat_with_an_idempotency_key_is_one_message(stage: Stage, scene: Scene, session: str) -> None:
    """The gateway that appended dies before it answers; the repeat on another one says which seq it was."""
    publisher = stage.publisher(scene.gateways[1:], session, name="")
    first = stage.publisher(scene.gateways[:1], session, publisher.ledger, name="", request_seconds=0.5)
    names = await seat(stage, session, scene.gateways[1:], 2)
    await publisher.publish(delta("r", stage.rng))  # the first one of a run may be asked for a second time
    payload = {"kind": "delta", "run": "r", "text": "only once"}
    scene.proxy.lose_reply(_is_append(b"only once"))
    scene.proxy.is_refusing = True  # the gateway itself must not repeat it
    asking = asyncio.create_task(first.publish(payload, key="k1"))
    await scene.proxy.hit.wait()

    await scene.gateways[0].kill()
    scene.proxy.is_refusing = False
    seqs = await publisher.publish(payload, key="k1")
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await publisher.publish(delta("r", stage.rng))

    await flawless(stage, publisher.ledger, names)
    assert [2] == seqs
    assert publisher.counts["duplicate"] == 1
    assert publisher.ledger.head == 3


async def test_scripts_flushed_under_load(stage: Stage, scene: Scene, session: str) -> None:
    """Failure catalogue R11: the script cache is emptied thirty times; connects and appends succeed at once."""
    publisher = stage.publisher(scene.gateways, session)
    names = await seat(stage, session, scene.gateways, 2)

    async with stage.flow(publisher, per_second=200):
        for number in range(30):
            scene.server.ask("SCRIPT", "FLUSH")
            if number % 10 == 5:
                names += await seat(stage, session, scene.gateways, prefix=f"{session}-late{number}")
            await asyncio.sleep(0.05)

    verdicts = await flawless(stage, publisher.ledger, names)
    assert await scene.metric("redis_errors_total", code="noscript") >= 1
    assert not any(verdict.raw["refusals"] for verdict in verdicts)
    assert publisher.counts["answered_503"] == 0


async def test_out_of_memory_is_retryable(stage: Stage, scene: Scene, session: str) -> None:
    """Appends are refused whole until there is memory again; reading goes on."""
    publisher = stage.publisher(scene.gateways, session)
    names = await seat(stage, session, scene.gateways, 2)

    async with stage.flow(publisher, per_second=100):
        for _ in range(3):
            await asyncio.sleep(0.2)
            scene.server.ask("CONFIG", "SET", "maxmemory", "1mb")
            await asyncio.sleep(0.4)
            scene.server.ask("CONFIG", "SET", "maxmemory", "0")

    verdicts = await flawless(stage, publisher.ledger, names)
    assert await scene.metric("redis_errors_total", code="oom") >= 3
    assert not any(verdict.closes for verdict in verdicts)


async def test_primary_that_refuses_writes(stage: Stage, scene: Scene, session: str) -> None:
    """Failure catalogue R07: it is a replica for a moment. Retried, then accepted; nobody sees more than a delay."""
    publisher = stage.publisher(scene.gateways, session)
    names = await seat(stage, session, scene.gateways, 2)

    async with stage.flow(publisher, per_second=200):
        for _ in range(3):
            await asyncio.sleep(0.3)
            scene.server.ask("REPLICAOF", "127.0.0.1", "1")
            await asyncio.sleep(0.2)
            scene.server.promote()
            await asyncio.sleep(0.3)

    await flawless(stage, publisher.ledger, names)
    assert await scene.metric("redis_errors_total", code="readonly") >= 1


async def test_connections_cut_under_load(stage: Stage, scene: Scene, session: str) -> None:
    """Fifteen times, whatever is in flight, of named and anonymous producers at once."""
    ledger = Ledger()
    publishers = [stage.publisher(scene.gateways, session, ledger, name=name) for name in ("p", "q", "")]
    names = await seat(stage, session, scene.gateways, 2)
    cuts = 0

    async with asyncio.TaskGroup() as group:

        async def publish(publisher: Publisher, run: str) -> None:
            for _ in range(150):
                await publisher.publish(delta(run, stage.rng))
                await asyncio.sleep(0.01)

        for publisher, run in zip(publishers, "abc", strict=True):
            group.create_task(publish(publisher, run))
        for _ in range(15):
            await asyncio.sleep(0.1)
            cuts += scene.proxy.cut(Links.COMMANDS)

    await flawless(stage, ledger, names)
    assert cuts >= 15
    assert ledger.head == 450


async def test_given_up_append_that_is_executed_later(stage: Stage, scene: Scene, session: str) -> None:
    """A frozen server has the append in its buffer and runs it when it wakes: not lost, doubled, swapped, swallowed."""
    ledger = Ledger()
    named = stage.publisher(scene.gateways, session, ledger, name="p")
    anonymous = stage.publisher(scene.gateways, session, ledger, name="", deadline_seconds=0.1)
    names = await seat(stage, session, scene.gateways, 2)

    async def publish(publisher: Publisher, run: str, until: float) -> None:
        number = 0
        while time.monotonic() < until:
            await publisher.publish({"kind": "delta", "run": run, "text": f"{run}{number};"})
            number += 1
            await asyncio.sleep(0.01)

    until = time.monotonic() + 8
    async with asyncio.TaskGroup() as group:
        group.create_task(publish(named, "n", until))
        group.create_task(publish(anonymous, "a", until))
        for _ in range(2):
            await asyncio.sleep(0.3)
            scene.server.freeze()
            await asyncio.sleep(3)
            scene.server.thaw()

    await arrived(stage, ledger, names)
    verdicts = await stage.witness.judge(ledger, names)
    assert_flawless(verdicts)
    assert anonymous.counts["uncertain"] >= 1
    assert named.slowest_seconds >= 2.5
    texts = (await stage.witness.ask("texts", name=names[0]))["texts"]
    pieces = texts["n"].split(";")[:-1]
    assert [f"n{number}" for number in range(len(pieces))] == pieces
    pieces = texts["a"].split(";")[:-1]
    numbers = [int(piece[1:]) for piece in pieces]
    assert sorted(set(numbers)) == numbers
    uncertain = {int(payload["text"][1:-1]) for payload in ledger.uncertain}
    assert set(range(max(numbers) + 1)) - set(numbers) <= uncertain
