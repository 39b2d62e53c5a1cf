"""A Redis Cluster loses primaries: the gateways follow, nothing is lost silently, and other servers' sessions go on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from loadtest.processes import Gateway, Server
from loadtest.publisher import Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict
from tests.integration.redis.cluster import Cluster, running_cluster

pytestmark = pytest.mark.fault

PATIENT = {"redis__deadline_seconds": "20"}
"""Above what a promotion takes on a busy machine: producers wait and are not refused."""


@pytest.fixture
async def cluster(stage: Stage) -> AsyncIterator[Cluster]:
    async with running_cluster(stage) as cluster:
        yield cluster


class Play:
    """Of each primary one session, with its publisher and readers at all gateways."""

    def __init__(self, stage: Stage, gateways: Sequence[Gateway], cluster: Cluster) -> None:
        self.stage = stage
        self.gateways = gateways
        self.publishers = {
            server.port: stage.publisher(gateways, cluster.session_on(server)) for server in cluster.primaries
        }
        self.names: dict[int, list[str]] = {}

    @classmethod
    async def begin(cls, stage: Stage, cluster: Cluster, gateways: int = 3, **settings: str) -> "Play":
        play = cls(stage, await stage.start_gateways(gateways, cluster.url, **settings), cluster)
        for port, publisher in play.publishers.items():
            play.names[port] = await seat(stage, publisher.session, play.gateways, 3)
        return play

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
    assert max(slowest) < 1 < play.publishers[dies.port].slowest_seconds


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


async def test_slots_that_move_atomically_cost_nothing(stage: Stage, cluster: Cluster) -> None:
    """Valkey 9, under load, twice: no message lost, no 503, no gap, no socket ended."""
    play = await Play.begin(stage, cluster)
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
