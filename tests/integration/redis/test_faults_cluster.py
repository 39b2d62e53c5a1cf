"""A Redis Cluster loses primaries: the gateways follow, nothing is lost silently, and other servers' sessions go on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from gateway.adapters.resp.slots import slot_of
from loadtest.processes import Gateway, Server
from loadtest.publisher import Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict
from tests.integration.redis.cluster import Cluster, meta_key, running_cluster, running_partition

pytestmark = pytest.mark.fault

PATIENT = {"redis__deadline_seconds": "20"}
"""Above what a promotion takes on a busy machine: producers wait and are not refused."""


@pytest.fixture
async def cluster(stage: Stage) -> AsyncIterator[Cluster]:
    async with running_cluster(stage) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(shared_stage: Stage) -> AsyncIterator[tuple[Stage, Cluster, list[Gateway]]]:
    """For tests that leave every slot where it was and every server alive."""
    async with running_cluster(shared_stage) as cluster:
        yield shared_stage, cluster, await shared_stage.start_gateways(2, cluster.url, **PATIENT)


class Play:
    """Of each primary one session, with its publisher and readers at all gateways."""

    def __init__(self, stage: Stage, gateways: Sequence[Gateway], cluster: Cluster, prefix: str = "s") -> None:
        self.stage = stage
        self.gateways = gateways
        self.publishers = {
            server.port: stage.publisher(gateways, cluster.session_on(server, prefix)) for server in cluster.primaries
        }
        self.names: dict[int, list[str]] = {}

    @classmethod
    async def begin(cls, stage: Stage, cluster: Cluster, gateways: int = 3, **settings: str) -> "Play":
        return await cls(stage, await stage.start_gateways(gateways, cluster.url, **settings), cluster).seated()

    async def seated(self) -> "Play":
        for port, publisher in self.publishers.items():
            self.names[port] = await seat(self.stage, publisher.session, self.gateways, 3)
        return self

    @asynccontextmanager
    async def flows(self, per_second: float) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for publisher in self.publishers.values():
                await stack.enter_async_context(self.stage.flow(publisher, per_second=per_second))
            yield

    async def whole(self, server: Server) -> Publisher:
        """Nothing of its session was lost, not even for a moment: no gap, no 503, no socket ended."""
        publisher, names = self.publishers[server.port], self.names[server.port]
        verdicts = await flawless(self.stage, publisher.ledger, names, 20)
        assert publisher.counts["lost_writes"] == 0
        assert publisher.counts["answered_503"] == 0
        assert no_socket_ended(verdicts)
        return publisher

    async def exact(self, server: Server) -> list[Verdict]:
        """Everything is there once, or was named as lost; the texts are equal to the byte; no socket ended."""
        publisher, names = self.publishers[server.port], self.names[server.port]
        await arrived(self.stage, publisher.ledger, names, 20)
        verdicts = await self.stage.witness.judge(publisher.ledger, names)
        assert_flawless(verdicts, may_gap=True)
        assert_texts(verdicts, publisher.ledger)
        assert [[]] * len(names) == [verdict.raw["missing"] for verdict in verdicts]
        assert [publisher.ledger.head] * len(names) == [verdict.applied for verdict in verdicts]
        assert no_socket_ended(verdicts)
        return verdicts


def no_socket_ended(verdicts: Sequence[Verdict]) -> bool:
    return all(not verdict.closes for verdict in verdicts)


async def test_killed_primary_stops_its_own_sessions_only(stage: Stage, cluster: Cluster) -> None:
    """In mid-stream: its sessions wait for the promotion and are exact; those of the other servers notice nothing."""
    play = await Play.begin(stage, cluster, **PATIENT)
    dies, *others = cluster.primaries

    async with play.flows(per_second=50):
        await asyncio.sleep(0.5)
        for publisher in play.publishers.values():
            publisher.slowest_seconds = 0
        dies.kill()
        await cluster.promoted(dies)
        await asyncio.sleep(1)

    await play.exact(dies)
    slowest = [(await play.whole(other)).slowest_seconds for other in others]
    assert max(slowest) < play.publishers[dies.port].slowest_seconds / 2


async def test_lost_writes_are_named_exactly(stage: Stage, cluster: Cluster) -> None:
    """Five are delivered that the replica does not have: the gap is these five; the producer sends them again."""
    play = await Play.begin(stage, cluster, 2, **PATIENT)
    dies = cluster.primaries[0]
    replica = cluster.replica_of(dies)
    publisher, names = play.publishers[dies.port], play.names[dies.port]
    for _ in range(20):
        await publisher.publish(delta("r", stage.rng))
    await asyncio.to_thread(replica.wait_synced, dies)
    replica.freeze()
    # What is written from here on goes into no socket that the replica could still read.
    dies.ask("CLIENT", "KILL", "TYPE", "replica")
    base, line = publisher.ledger.head, publisher.ledger.line
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    lost = publisher.ledger.above(line, base)

    dies.kill()
    replica.thaw()
    await cluster.promoted(dies)
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))
    await stage.witness.wait(20, names, gaps=1)

    verdicts = await play.exact(dies)
    assert publisher.counts["resent"] == 5 == len(lost)
    assert [[(lost[0], lost[-1], "epoch_changed")]] * 3 == [verdict.gap_ranges for verdict in verdicts]


@pytest.mark.asyncio(loop_scope="module")
async def test_slots_that_move_atomically_cost_nothing(shared: tuple[Stage, Cluster, list[Gateway]]) -> None:
    """Valkey 9, under load, there and back: no message lost, no 503, no gap, no socket ended."""
    stage, cluster, gateways = shared
    play = await Play(stage, gateways, cluster, "atomic").seated()
    source, target, _ = cluster.primaries

    async with play.flows(per_second=100):
        await asyncio.sleep(0.5)
        # Not all: a primary without slots becomes a replica.
        await cluster.migrate([(0, 5_459)], source, target)
        await asyncio.sleep(0.5)
        await cluster.migrate([(0, 5_459)], target, source)
        await asyncio.sleep(0.5)

    for server in cluster.primaries:
        await play.whole(server)


@pytest.mark.asyncio(loop_scope="module")
async def test_slot_that_moves_key_by_key_is_waited_for(shared: tuple[Stage, Cluster, list[Gateway]]) -> None:
    """Its sessions answer TRYAGAIN: producers wait and are not refused, sockets stay, nothing is lost (R08)."""
    stage, cluster, gateways = shared
    play = await Play(stage, gateways, cluster, "keys").seated()
    source, target, _ = cluster.primaries
    slot = slot_of(meta_key(play.publishers[source.port].session).encode())

    async with play.flows(per_second=50):
        await asyncio.sleep(0.5)
        async with cluster.moving_by_keys(slot, source, target):
            await asyncio.sleep(1)
        await asyncio.sleep(0.5)
        await cluster.migrate([(slot, slot)], target, source)

    for server in cluster.primaries:
        await play.whole(server)
    refused = [await gateway.metric("redis_errors_total", code="tryagain") for gateway in play.gateways]
    assert sum(refused) > 0


async def test_sharded_channels_deliver_and_follow_their_slot(stage: Stage, cluster: Cluster) -> None:
    """`redis.shard_publish`: the slot of a gateway's channel moves, then its link is cut: nothing is lost (R08)."""
    play = await Play.begin(stage, cluster, 2, redis__shard_publish="true")
    channel = slot_of(f"rr:ch:{play.gateways[0].ident}".encode())
    source = cluster.owner_of(channel)
    target = next(server for server in cluster.primaries if server is not source)

    async with play.flows(per_second=50):
        await asyncio.sleep(0.5)
        before = [await gateway.metric("repairs_total") for gateway in play.gateways]
        await cluster.migrate([(channel, channel)], source, target)
        await _reconnected(play.gateways[0], 1)
        target.ask("CLIENT", "KILL", "TYPE", "PUBSUB")
        await _reconnected(play.gateways[0], 2)
        await asyncio.sleep(0.5)

    for server in cluster.primaries:
        await play.whole(server)
    assert [0, 0] == before


async def _reconnected(gateway: Gateway, times: int) -> None:
    """So often its subscription was lost, and it is there again."""
    async with asyncio.timeout(20):
        while await gateway.metric("bus_reconnects_total") < times:
            await asyncio.sleep(0.05)
    assert await gateway.metric("bus_reconnects_total") == times


@pytest.mark.soak
async def test_what_a_primary_takes_while_it_is_cut_off_is_lost_and_named(stage: Stage) -> None:
    """It answers the gateways and not its cluster: until it notices, it takes writes that its successor never sees."""
    async with running_partition(stage) as partition:
        cluster = partition.cluster
        play = await Play.begin(stage, cluster, **PATIENT)
        alone = cluster.primaries[0]

        async with play.flows(per_second=50):
            await asyncio.sleep(0.5)
            partition.cut_off(alone)
            await cluster.promoted(alone)
            await asyncio.sleep(1)
            partition.heal(alone)
            await cluster.until(cluster.is_well, "the old primary is a replica of its successor")
            await asyncio.sleep(0.5)

        verdicts = await play.exact(alone)
        assert play.publishers[alone.port].counts["resent"] > 0
        assert {1} == {len(verdict.raw["gaps"]) for verdict in verdicts}
        assert {"epoch_changed"} == {reason for verdict in verdicts for _, _, reason in verdict.gap_ranges}
        for other in cluster.primaries[1:]:
            await play.whole(other)


@pytest.mark.soak
async def test_replicas_are_waited_for_through_a_promotion(stage: Stage, cluster: Cluster) -> None:
    """`append.min_replicas`: what was acknowledged is at the replica, so a killed primary takes nothing with it."""
    play = await Play.begin(stage, cluster, **PATIENT, append__min_replicas="1")
    dies, *others = cluster.primaries

    async with play.flows(per_second=50):
        await asyncio.sleep(1)
        dies.kill()
        promoted = await cluster.promoted(dies)
        await asyncio.to_thread(dies.start)
        await cluster.until(cluster.is_well, "the killed one is a replica of its successor")
        await asyncio.sleep(1)

    assert cluster.is_primary(promoted)
    await play.exact(dies)
    assert play.publishers[dies.port].counts["lost_writes"] == 0
    for other in others:
        await play.whole(other)


@pytest.mark.soak
async def test_old_primary_that_wakes_up_again_is_not_listened_to(stage: Stage, cluster: Cluster) -> None:
    """It stands still until its replica is promoted, then believes for a moment that nothing has happened."""
    play = await Play.begin(stage, cluster, **PATIENT)
    old = cluster.primaries[0]

    async with play.flows(per_second=50):
        await asyncio.sleep(0.5)
        old.freeze()
        await cluster.promoted(old)
        await asyncio.sleep(0.5)
        old.thaw()
        await asyncio.sleep(1.5)

    await play.exact(old)
    for other in cluster.primaries[1:]:
        await play.whole(other)


@pytest.mark.soak
@pytest.mark.parametrize("is_sharded", [False, True])
async def test_fail_overs_on_command_under_load(stage: Stage, cluster: Cluster, *, is_sharded: bool) -> None:
    """`CLUSTER FAILOVER` hands over with everything, there and back, on all three: nobody is told of a gap."""
    play = await Play.begin(stage, cluster, **PATIENT, redis__shard_publish=str(is_sharded).lower())

    async with play.flows(per_second=100):
        for primary in cluster.primaries:
            replica = cluster.replica_of(primary)
            for taker in (replica, primary):
                await asyncio.sleep(0.5)
                await cluster.hand_over(taker)

    for server in cluster.primaries:
        await play.whole(server)


@pytest.mark.soak
async def test_primaries_killed_one_after_the_other(stage: Stage, cluster: Cluster) -> None:
    """Each comes back as a replica of the one that took its place, and that one is killed, too."""
    play = await Play.begin(stage, cluster, **PATIENT)

    async with play.flows(per_second=200):
        for primary in cluster.primaries:
            replica = cluster.replica_of(primary)
            for dies, takes_over in ((primary, replica), (replica, primary)):
                await asyncio.sleep(1)
                dies.kill()
                await cluster.until(lambda taker=takes_over: cluster.is_primary(taker), "a promotion")
                await asyncio.to_thread(dies.start)
                await cluster.until(cluster.is_well, "all is well again")

    for server in cluster.primaries:
        await play.exact(server)
