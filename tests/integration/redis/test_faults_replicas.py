"""Appends that wait for replicas (`append.min_replicas`): what a client saw is never lost, whoever dies (G2, G9)."""

import asyncio

import pytest

from loadtest.plain_http import Answer, ask_once
from loadtest.processes import Gateway, Server
from loadtest.publisher import Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage
from tests.integration.redis.cluster import running_cluster
from tests.integration.redis.fleet import Fleet

pytestmark = pytest.mark.fault

WAITING = {"append__min_replicas": "1", "append__replica_wait_seconds": "0.3"}
BOUND_SECONDS = 20.0


async def pair(stage: Stage) -> tuple[Server, Server]:
    primary, replica = stage.server(), stage.server()
    await asyncio.to_thread(replica.follow, primary)
    return primary, replica


async def push(gateway: Gateway, publisher: Publisher, payload: dict[str, object]) -> Answer:
    """One attempt of the publisher's next number."""
    body = {"payload": payload, "producer": publisher.name, "epoch": publisher.epoch, "number": publisher.number}
    path = f"/v1/sessions/{publisher.session}/push"
    return await ask_once(gateway.url, "POST", path, body, timeout_seconds=BOUND_SECONDS)


async def head(gateway: Gateway, session: str) -> int:
    answer = await ask_once(gateway.url, "GET", f"/v1/sessions/{session}", timeout_seconds=BOUND_SECONDS)
    found: int = answer.json()["head"]
    return found


@pytest.mark.parametrize("fault", ["stands still", pytest.param("is gone", marks=pytest.mark.soak)])
async def test_without_its_replica_a_message_is_refused_and_unseen_until_it_is_back(stage: Stage, fault: str) -> None:
    """503 `unreplicated` in bounded time, nothing visible, sockets stay; then everything in order and once."""
    primary, replica = await pair(stage)
    gateways = await stage.start_gateways(2, primary.url, redis__deadline_seconds="2.5", **WAITING)
    publisher = stage.publisher(gateways, "s", name="p")
    names = await seat(stage, "s", gateways, 4)
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    payload = delta("r", stage.rng)

    if fault == "stands still":
        replica.freeze()
    else:
        replica.kill()
    answer = await push(gateways[0], publisher, payload)
    told = await head(gateways[1], "s")
    positions = (await stage.witness.judge(publisher.ledger, names))[0].applied
    if fault == "stands still":
        replica.thaw()
    else:
        replica.start()
        await asyncio.to_thread(replica.follow, primary)
    await stage.witness.wait(BOUND_SECONDS, names, position=6)
    await publisher.publish(payload)
    await publisher.publish(delta("r", stage.rng))

    assert (answer.status, answer.error_code, answer.json()["error"]["retryable"]) == (503, "unreplicated", True)
    assert "retry-after" in answer.headers
    assert (told, positions) == (5, 5)
    verdicts = await flawless(stage, publisher.ledger, names)
    assert publisher.counts["duplicate"] == 1
    assert all(not verdict.closes for verdict in verdicts)


async def test_gateway_killed_between_append_and_reveal_leaves_nothing_hidden(stage: Stage) -> None:
    """Nobody appends again: the other gateway's renewal finds the message and shows it."""
    primary, replica = await pair(stage)
    dying, other = await stage.start_gateways(2, primary.url, **{**WAITING, "append__replica_wait_seconds": "1.5"})
    publisher = stage.publisher([other], "s", name="p")
    names = await seat(stage, "s", [other], 2)
    await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    payload = delta("r", stage.rng)

    replica.freeze()
    attempt = asyncio.create_task(push(dying, publisher, payload))
    while _appended(primary) < 2:
        await asyncio.sleep(0.01)
    await dying.kill()
    await asyncio.gather(attempt, return_exceptions=True)
    told = await head(other, "s")
    replica.thaw()
    await stage.witness.wait(BOUND_SECONDS, names, position=2)

    assert told == 1
    await publisher.publish(payload)
    assert publisher.counts["duplicate"] == 1
    await flawless(stage, publisher.ledger, names)


async def test_nothing_that_a_client_saw_is_lost_with_the_primary(stage: Stage, fleet: Fleet) -> None:
    """Replicas fall behind, then `kill -9` of the primary in mid-stream: no gap, no lost writes, nothing twice."""
    settings = {"append__min_replicas": "2", "append__replica_wait_seconds": "0.3", "redis__deadline_seconds": "20"}
    gateways = await stage.start_gateways(2, fleet.url, **settings)
    publisher = stage.publisher(gateways, "s", name="p", request_seconds=25, deadline_seconds=40)
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=200):
        await asyncio.sleep(0.7)
        for replica in fleet.replicas:
            replica.freeze()
        # What is written from here on goes into no socket that a replica could still read.
        fleet.primary.ask("CLIENT", "KILL", "TYPE", "replica")
        await asyncio.sleep(0.4)
        fleet.primary.kill()
        for replica in fleet.replicas:
            replica.thaw()
        promoted = await fleet.promoted()
        second = stage.server()
        await asyncio.to_thread(second.ask, "REPLICAOF", "127.0.0.1", str(promoted.port))
        await asyncio.sleep(1.5)

    verdicts = await flawless(stage, publisher.ledger, names, 20)
    assert publisher.counts["lost_writes"] == 0
    assert len(publisher.ledger.entries) > 100
    assert all(not verdict.closes for verdict in verdicts)


@pytest.mark.soak
async def test_one_of_two_replicas_is_enough_for_the_loss_of_the_primary(stage: Stage, fleet: Fleet) -> None:
    """One replica is behind, the other has everything: the sentinels promote that one."""
    settings = {"append__min_replicas": "1", "append__replica_wait_seconds": "0.3", "redis__deadline_seconds": "20"}
    gateways = await stage.start_gateways(2, fleet.url, **settings)
    publisher = stage.publisher(gateways, "s", name="p", request_seconds=25, deadline_seconds=40)
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=200):
        await asyncio.sleep(0.7)
        fleet.replicas[0].freeze()
        fleet.primary.ask("CLIENT", "KILL", "TYPE", "replica")
        await asyncio.sleep(1.5)
        fleet.primary.kill()
        fleet.replicas[0].thaw()
        await fleet.promoted()
        await asyncio.sleep(3)

    verdicts = await flawless(stage, publisher.ledger, names, 20)
    assert publisher.counts["lost_writes"] == 0
    assert all(not verdict.closes for verdict in verdicts)


@pytest.mark.soak
async def test_a_cluster_waits_for_the_replicas_of_each_primary(stage: Stage) -> None:
    """One primary's replica falls behind, then that primary dies: its clients lose nothing, others are not held up."""
    async with running_cluster(stage) as cluster:
        settings = {**WAITING, "redis__deadline_seconds": "30"}
        gateways = await stage.start_gateways(2, cluster.url, **settings)
        dying, other = cluster.primaries[:2]
        replica = cluster.replica_of(dying)
        hit = stage.publisher(gateways, cluster.session_on(dying), name="p", request_seconds=35, deadline_seconds=60)
        spared = stage.publisher(gateways, cluster.session_on(other), name="q", request_seconds=35)
        names = await seat(stage, hit.session, gateways, 2)
        others = await seat(stage, spared.session, gateways, 2)

        async with stage.flow(hit, per_second=100), stage.flow(spared, per_second=100):
            await asyncio.sleep(0.7)
            replica.freeze()
            dying.ask("CLIENT", "KILL", "TYPE", "replica")
            await asyncio.sleep(0.4)
            dying.kill()
            replica.thaw()
            await cluster.promoted(dying)
            dying.start()
            await asyncio.to_thread(dying.wait_synced, replica, BOUND_SECONDS)
            await asyncio.sleep(1)

        await flawless(stage, hit.ledger, names, 30)
        await flawless(stage, spared.ledger, others, 20)
        assert hit.counts["lost_writes"] == 0
        assert spared.counts["answered_503"] == 0


@pytest.mark.soak
async def test_a_rolling_change_of_the_setting_loses_nothing(stage: Stage) -> None:
    """One gateway waits, its neighbour does not yet; then both do; then none. Readers are at all of them."""
    primary, _ = await pair(stage)
    plain = await stage.gateway(primary.url)
    waiting = await stage.gateway(primary.url, **WAITING)
    names = [*await seat(stage, "s", [plain], 2, prefix="plain"), *await seat(stage, "s", [waiting], 2, prefix="waits")]
    publishers = [stage.publisher([plain, waiting], "s", name="p")]
    publishers.append(stage.publisher([waiting, plain], "s", publishers[0].ledger, name="q"))

    async with stage.flow(publishers[0], per_second=100), stage.flow(publishers[1], per_second=100, run="r2"):
        await asyncio.sleep(0.5)
        second = await stage.gateway(primary.url, **WAITING)
        for publisher in publishers:
            publisher.urls = [second.url, waiting.url]
        await asyncio.sleep(0.5)
        third = await stage.gateway(primary.url)
        for publisher in publishers:
            publisher.urls = [third.url, plain.url]
        await asyncio.sleep(0.5)

    await flawless(stage, publishers[0].ledger, names, 20)


def _appended(primary: Server) -> int:
    with primary.client() as client:
        return sum(int(client.xlen(key)) for key in client.scan_iter("rr:{*}:log"))
