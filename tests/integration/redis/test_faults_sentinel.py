"""Sentinels promote a replica: the gateways follow, nothing is lost silently, no socket ends (G9, R07)."""

import asyncio

import pytest

from loadtest.processes import Gateway
from loadtest.publisher import Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict
from tests.integration.redis.fleet import Fleet

pytestmark = pytest.mark.fault

PATIENT = {"redis__deadline_seconds": "20"}
"""Above what a fail-over takes on a busy machine: producers wait and are not refused."""


async def test_killed_primary_is_left_for_the_promoted_replica(stage: Stage, fleet: Fleet) -> None:
    """Replicas that have everything: one fork, not a message lost, nobody is told of a gap."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=50):
        await asyncio.sleep(0.5)
        # Writes pause, so that the replicas have all that was answered when it dies.
        fleet.primary.ask("CLIENT", "PAUSE", "60000", "WRITE")
        for replica in fleet.replicas:
            await asyncio.to_thread(replica.wait_synced, fleet.primary)
        fleet.primary.kill()
        await fleet.promoted()
        await asyncio.sleep(1)

    verdicts = await flawless(stage, publisher.ledger, names, 20)
    assert publisher.counts["lost_writes"] == 0
    assert [1] * 4 == [len(verdict.raw["forks"]) for verdict in verdicts]
    assert _no_socket_ended(verdicts)


async def test_lost_writes_are_named_exactly(stage: Stage, fleet: Fleet) -> None:
    """Five are delivered that no replica has: the gap is these five; the producer sends them again."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)
    for _ in range(20):
        await publisher.publish(delta("r", stage.rng))
    for replica in fleet.replicas:
        await asyncio.to_thread(replica.wait_synced, fleet.primary)
        replica.freeze()
    # What is written from here on goes into no socket that a replica could still read.
    fleet.primary.ask("CLIENT", "KILL", "TYPE", "replica")
    base, line = publisher.ledger.head, publisher.ledger.line
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    lost = publisher.ledger.above(line, base)

    fleet.primary.kill()
    for replica in fleet.replicas:
        replica.thaw()
    await fleet.promoted()
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))
    await stage.witness.wait(20, names, gaps=1)
    await arrived(stage, publisher.ledger, names)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert publisher.counts["resent"] == 5 == len(lost)
    assert [[(lost[0], lost[-1], "epoch_changed")]] * 4 == [verdict.gap_ranges for verdict in verdicts]
    assert [publisher.ledger.head] * 4 == [verdict.applied for verdict in verdicts]
    assert _no_socket_ended(verdicts)


async def test_old_primary_that_wakes_up_again_is_not_listened_to(stage: Stage, fleet: Fleet) -> None:
    """It stands still until another one is promoted, then believes to be the primary until the sentinels demote it."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=50):
        await asyncio.sleep(0.5)
        fleet.primary.freeze()
        await fleet.promoted()
        await asyncio.sleep(0.5)
        fleet.primary.thaw()
        await asyncio.sleep(1.5)

    verdicts = await _exact(stage, publisher, names)
    assert _no_socket_ended(verdicts)
    assert {0} == set(await asyncio.gather(*(_errors_of_replicas(gateway) for gateway in gateways)))


@pytest.mark.soak
async def test_fail_overs_on_command_under_load(stage: Stage, fleet: Fleet) -> None:
    """The old primary lives and becomes a replica (R07): three times, each write is there once or named as lost."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=100):
        for _ in range(3):
            await asyncio.sleep(1)
            await fleet.switch()
            await asyncio.sleep(2)

    verdicts = await _exact(stage, publisher, names)
    assert _no_socket_ended(verdicts)


@pytest.mark.soak
async def test_coordinated_fail_over_loses_nothing(stage: Stage, fleet: Fleet) -> None:
    """As operators do it with Valkey 9: writes pause, the replica catches up, roles change; nobody is told of a gap."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=50):
        await asyncio.sleep(0.5)
        await fleet.switch("COORDINATED")
        await asyncio.sleep(1)

    verdicts = await flawless(stage, publisher.ledger, names, 20)
    assert publisher.counts["lost_writes"] == 0
    assert _no_socket_ended(verdicts)


@pytest.mark.soak
async def test_primary_killed_in_mid_stream(stage: Stage, fleet: Fleet) -> None:
    """Nothing is arranged: what the promoted replica has is what counts, and the rest is named."""
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=300):
        await asyncio.sleep(1)
        fleet.primary.kill()
        await fleet.promoted()
        await asyncio.sleep(2)

    verdicts = await _exact(stage, publisher, names)
    assert _no_socket_ended(verdicts)


@pytest.mark.soak
async def test_minority_of_sentinels_is_enough_to_start(stage: Stage, fleet: Fleet) -> None:
    """One sentinel stands still, one is gone: the third one is asked, by those who start and by those who run."""
    fleet.sentinels[0].freeze()
    fleet.sentinels[1].end()
    gateways = await stage.start_gateways(2, fleet.url, **PATIENT)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.5)
        fleet.primary.ask("CLIENT", "KILL", "TYPE", "normal")
        fleet.primary.ask("CLIENT", "KILL", "TYPE", "pubsub")
        await asyncio.sleep(2)

    verdicts = await flawless(stage, publisher.ledger, names, 20)
    assert _no_socket_ended(verdicts)


async def _exact(stage: Stage, publisher: Publisher, names: list[str]) -> list[Verdict]:
    """Everything is there once, or was named as lost; the texts are equal to the byte."""
    await arrived(stage, publisher.ledger, names, 20)
    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert_texts(verdicts, publisher.ledger)
    assert [[]] * len(names) == [verdict.raw["missing"] for verdict in verdicts]
    assert [publisher.ledger.head] * len(names) == [verdict.applied for verdict in verdicts]
    return verdicts


async def _errors_of_replicas(gateway: Gateway) -> float:
    """Writes that a replica refused: there are none where the old primary is left for good."""
    return await gateway.metric("redis_errors_total", code="readonly")


def _no_socket_ended(verdicts: list[Verdict]) -> bool:
    return all(not verdict.closes for verdict in verdicts)
