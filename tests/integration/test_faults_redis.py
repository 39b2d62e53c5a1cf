"""Redis restarts, freezes, forgets and is replaced: trouble is not loss, and loss is never silent (G9, G10)."""

import asyncio
import time

import pytest

from loadtest.faults import RedisProxy
from loadtest.processes import Gateway, Server
from loadtest.publisher import delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict

pytestmark = pytest.mark.fault


async def test_restart_with_persistence_loses_nothing(stage: Stage) -> None:
    """Killed -9 twice in mid-stream and started again: a new fork each time, and nobody is told of a gap (R01, R11)."""
    server = stage.server(is_persistent=True)
    gateways = await stage.start_gateways(2, server.url)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=100):
        for _ in range(2):
            await asyncio.sleep(0.5)
            server.kill()
            await asyncio.sleep(0.3)
            await asyncio.to_thread(server.start)
            await asyncio.sleep(1)

    verdicts = await flawless(stage, publisher.ledger, names)
    assert [2] * 4 == [len(verdict.raw["forks"]) for verdict in verdicts]
    assert _no_socket_ended(verdicts)


async def test_restart_without_persistence_is_announced_exactly(stage: Stage) -> None:
    """Everything is gone: the gap names all that each client had, and a new epoch begins at 1."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)
    for _ in range(30):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    lost = publisher.ledger.head

    server.kill()
    await asyncio.to_thread(server.start)
    await stage.witness.wait(10, names, gaps=1)
    for _ in range(20):
        await publisher.publish(delta("r2", stage.rng))
    await arrived(stage, publisher.ledger, names)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert publisher.counts["producer_unknown"] == 1
    assert [[(1, lost)]] * 4 == [[(first, last) for first, last, _ in v.gap_ranges] for v in verdicts]
    assert [20] * 4 == [verdict.applied for verdict in verdicts]
    assert _no_socket_ended(verdicts)


async def test_flushall_is_noticed_long_before_the_next_renewal(stage: Stage) -> None:
    """A gateway whose own record is gone looks at all its sessions: readers hear of it in seconds, not in a lease."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url, routes__lease_seconds="90", routes__renew_seconds="30")
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    await asyncio.sleep(3)  # no notice of a head is under way any more

    server.ask("FLUSHALL")
    await stage.witness.wait(12, names, gaps=1)
    for _ in range(10):
        await publisher.publish(delta("r2", stage.rng))
    await arrived(stage, publisher.ledger, names)

    assert_flawless(await stage.witness.judge(publisher.ledger, names), may_gap=True)


async def test_stalled_for_five_seconds(stage: Stage) -> None:
    """Appends wait or fail retryably, sockets stay, and afterwards everything is there once."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 4)

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.5)
        server.freeze()
        await asyncio.sleep(5)
        server.thaw()
        await asyncio.sleep(1)

    verdicts = await flawless(stage, publisher.ledger, names)
    assert publisher.slowest_seconds >= 4.5
    assert _no_socket_ended(verdicts)


@pytest.mark.soak
async def test_outage_leaves_gateways_alive_and_clients_connected(stage: Stage) -> None:
    """Failure catalogue K07, K08: 30 s; alive all the time, ready within the grace, then 503; no socket ends."""
    server = stage.server(is_persistent=True)
    gateways = await stage.start_gateways(2, server.url, readiness__redis_grace_seconds="2")
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 20)
    await publisher.publish(delta("r", stage.rng))
    ready: list[tuple[float, int, bytes]] = []
    alive: set[int] = set()

    server.kill()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < 30:
        for gateway in gateways:
            answer = await gateway.admin("/readyz")
            ready.append((passed, answer.status, answer.body))
            alive.add((await gateway.admin("/livez")).status)
        await asyncio.sleep(0.1)
    await asyncio.to_thread(server.start)
    began = time.monotonic()
    while {(await gateway.admin("/readyz")).status for gateway in gateways} != {200}:
        assert time.monotonic() - began < 5, "not ready again"
        await asyncio.sleep(0.05)
    await publisher.publish(delta("r", stage.rng))

    verdicts = await flawless(stage, publisher.ledger, names)
    assert alive == {200}
    assert {200} == {status for passed, status, _ in ready if passed < 1.9}
    late = [(status, b"redis" in body) for passed, status, body in ready if passed > 3.5]
    assert {(503, True)} == set(late)
    assert _no_socket_ended(verdicts)
    for gateway in gateways:
        assert 1 == gateway.log().count('"not_ready"')
        assert "drain_started" not in gateway.log()


class Replicated:
    """A primary with a replica; the gateways see whichever the proxy points to."""

    def __init__(self, primary: Server, replica: Server, proxy: RedisProxy, gateways: list[Gateway]) -> None:
        self.primary = primary
        self.replica = replica
        self.proxy = proxy
        self.gateways = gateways

    def fail_over(self) -> None:
        """The replica is the primary from here on; it may be promoted already."""
        self.replica.promote()
        self.proxy.target = self.replica.target
        assert self.proxy.cut() > 0
        self.primary, self.replica = self.replica, self.primary


@pytest.fixture
async def replicated(stage: Stage) -> Replicated:
    primary, replica = stage.server(), stage.server()
    await asyncio.to_thread(replica.follow, primary)
    proxy = await stage.proxy(primary)
    return Replicated(primary, replica, proxy, await stage.start_gateways(2, proxy.url))


@pytest.mark.parametrize("is_reading_on", [True, False], ids=["live", "resumed"])
async def test_replica_that_lacks_five_writes(stage: Stage, replicated: Replicated, is_reading_on: bool) -> None:
    """Acknowledged, delivered, lost: each client's gap names exactly these five; the producer sends them again."""
    publisher = stage.publisher(replicated.gateways, "s")
    names = await seat(stage, "s", replicated.gateways, 4)
    for _ in range(20):
        await publisher.publish(delta("r", stage.rng))
    await asyncio.to_thread(replicated.replica.wait_synced, replicated.primary)
    base, line = publisher.ledger.head, publisher.ledger.line
    replicated.replica.promote()
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)
    lost = publisher.ledger.above(line, base)

    if not is_reading_on:
        await stage.witness.ask("drop", names=names)
    replicated.primary.kill()
    replicated.fail_over()
    for _ in range(10):
        await publisher.publish(delta("r", stage.rng))
    await stage.witness.wait(10, names, gaps=1)
    await arrived(stage, publisher.ledger, names)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert publisher.counts["lost_writes"] == 1
    assert publisher.counts["resent"] == 5 == len(lost)
    wanted = [(lost[0], lost[-1], "epoch_changed")]
    assert [wanted] * 4 == [verdict.gap_ranges for verdict in verdicts]
    assert [publisher.ledger.head] * 4 == [verdict.applied for verdict in verdicts]


async def test_replica_that_lacks_nothing_is_not_worth_a_word(stage: Stage, replicated: Replicated) -> None:
    """A fail-over without loss: no gap for anybody, and no message lost or doubled under load."""
    publisher = stage.publisher(replicated.gateways, "s")
    names = await seat(stage, "s", replicated.gateways, 4)

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.5)
        await _hand_over(replicated)
        await asyncio.sleep(1)

    verdicts = await flawless(stage, publisher.ledger, names)
    assert publisher.counts["lost_writes"] == 0
    assert [1] * 4 == [len(verdict.raw["forks"]) for verdict in verdicts]


async def test_promoted_back_and_forth(stage: Stage, replicated: Replicated) -> None:
    """Four hand-overs between two servers that never restart: a fork each, and not one message lost."""
    publisher = stage.publisher(replicated.gateways, "s")
    names = await seat(stage, "s", replicated.gateways, 4)

    async with stage.flow(publisher, per_second=100):
        for _ in range(4):
            await asyncio.sleep(0.3)
            await _hand_over(replicated)
            await asyncio.sleep(0.7)

    verdicts = await flawless(stage, publisher.ledger, names)
    assert [4] * 4 == [len(verdict.raw["forks"]) for verdict in verdicts]
    assert _no_socket_ended(verdicts)


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.soak)])
async def test_lossy_fail_overs_back_and_forth(stage: Stage, replicated: Replicated, rounds: int) -> None:
    """Each loses some acknowledged writes; readers that are quick, slow, or came back in between are told exactly."""
    publisher = stage.publisher(replicated.gateways, "s")
    quick = await seat(stage, "s", replicated.gateways, 3, prefix="quick")
    slow = await seat(
        stage, "s", replicated.gateways, 2, prefix="slow", bytes_per_second=20_000, receive_buffer_bytes=4096
    )
    wanted = []
    for _ in range(rounds):
        for _ in range(stage.rng.randrange(5, 60)):
            await publisher.publish(delta("r", stage.rng, 20))
        await asyncio.to_thread(replicated.replica.wait_synced, replicated.primary)
        replicated.replica.promote()
        base, line = publisher.ledger.head, publisher.ledger.line
        await stage.witness.ask("hold", names=quick[:1])
        await stage.witness.ask("drop", names=quick[:1])
        for _ in range(stage.rng.randrange(1, 9)):
            await publisher.publish(delta("r", stage.rng, 20))
        await stage.witness.ask("go_on", names=quick[:1])
        await arrived(stage, publisher.ledger, quick)
        lost = publisher.ledger.above(line, base)
        wanted.append((lost[0], lost[-1], "epoch_changed"))
        old = replicated.primary
        replicated.fail_over()
        await asyncio.to_thread(old.follow, replicated.primary)
        await publisher.publish(delta("r", stage.rng))
        await stage.witness.wait(10, quick, gaps=len(wanted))
    await arrived(stage, publisher.ledger, [*quick, *slow], 20)

    verdicts = await stage.witness.judge(publisher.ledger, [*quick, *slow])
    assert_flawless(verdicts, may_gap=True)
    assert_texts(verdicts, publisher.ledger)
    assert publisher.counts["lost_writes"] == rounds
    assert [wanted] * 3 == [verdict.gap_ranges for verdict in verdicts[:3]]
    for verdict in verdicts:
        assert verdict.raw["missing"] == []
        assert {first for first, _, _ in verdict.gap_ranges} <= {first for first, _, _ in wanted}
        assert verdict.applied == publisher.ledger.head


async def test_lost_writes_of_anonymous_producers_leave_a_mark(stage: Stage, replicated: Replicated) -> None:
    """Nobody can send them again: the gateway says so in the log, before its next message."""
    publisher = stage.publisher(replicated.gateways[:1], "s", name="")
    names = await seat(stage, "s", replicated.gateways, 2)
    for _ in range(5):
        await publisher.publish(delta("r", stage.rng))
    await asyncio.to_thread(replicated.replica.wait_synced, replicated.primary)
    replicated.replica.promote()
    for _ in range(3):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, names)

    replicated.primary.kill()
    replicated.fail_over()
    mark = {"kind": "producer_gap", "reason": "lost_writes"}
    seqs = await publisher.publish(delta("r", stage.rng))
    publisher.ledger.note(publisher.ledger.line, 6, mark)
    await stage.witness.wait(10, names, gaps=1)
    await arrived(stage, publisher.ledger, names)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert [7] == seqs
    assert [[(6, 8, "epoch_changed")]] * 2 == [verdict.gap_ranges for verdict in verdicts]
    assert [7, 7] == [verdict.applied for verdict in verdicts]


async def _hand_over(replicated: Replicated) -> None:
    """As an operator does it: writes pause, the replica catches up, roles change; the old one refuses writes."""
    primary, replica = replicated.primary, replicated.replica
    primary.ask("CLIENT", "PAUSE", "10000", "WRITE")
    await asyncio.to_thread(replica.wait_synced, primary)
    replicated.fail_over()
    primary.ask("CLIENT", "UNPAUSE")
    await asyncio.to_thread(primary.follow, replica)


def _no_socket_ended(verdicts: list[Verdict]) -> bool:
    return all(not verdict.closes for verdict in verdicts)
