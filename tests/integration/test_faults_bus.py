"""What the fast path loses, repeats or holds back is found and repaired from the log (G1, design.md 4)."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import pytest_asyncio

from loadtest.faults import Links, RedisProxy, is_message_of
from loadtest.processes import Gateway, Server
from loadtest.publisher import Publisher, delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless

pytestmark = [pytest.mark.fault, pytest.mark.asyncio(loop_scope="module")]

HEAL_SECONDS = 4.0
"""The second notice comes after a second; without notices the renewals would find it, ten seconds later on average."""


class Pair:
    """A gateway that publishes, beside the server, and one that listens through a proxy which breaks things."""

    def __init__(self, server: Server, proxy: RedisProxy, near: Gateway, far: Gateway) -> None:
        self.server = server
        self.proxy = proxy
        self.near = near
        self.far = far


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def standing_pair(shared_stage: Stage) -> Pair:
    stage = shared_stage
    server = stage.server()
    proxy = await stage.proxy(server)
    settings = {"retention__max_messages": "200", "redis__backoff_max_ms": "500"}
    settings |= {"routes__lease_seconds": "60", "routes__renew_seconds": "20"}
    near, far = await asyncio.gather(stage.gateway(server.url, **settings), stage.gateway(proxy.url, **settings))
    return Pair(server, proxy, near, far)


@pytest_asyncio.fixture(loop_scope="module")
async def pair(standing_pair: Pair) -> AsyncIterator[Pair]:
    """Whole again after each test."""
    standing_pair.proxy.heal()
    yield standing_pair
    standing_pair.proxy.heal()
    await _until_subscribed(standing_pair.far)


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    """One of the test's own."""
    return str(request.node.name)


@pytest.fixture
def stage(shared_stage: Stage, seed: int) -> Stage:
    shared_stage.rng = random.Random(seed)
    return shared_stage


async def _burst(stage: Stage, publisher: Publisher, count: int) -> None:
    for _ in range(count):
        await publisher.publish(delta("r", stage.rng))


async def test_message_lost_in_mid_burst_is_repaired(stage: Stage, pair: Pair, session: str) -> None:
    """The next message shows the hole; the repair reads once, however many clients the session has."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 4)
    before = await pair.far.metric("repairs_total", cause="hole")
    pair.proxy.drop_message(is_message_of(b'"seq":30,'))

    await _burst(stage, publisher, 60)
    seconds = await arrived(stage, publisher.ledger, names)

    assert pair.proxy.counts["messages_dropped"] == 1
    assert seconds <= HEAL_SECONDS
    assert await pair.far.metric("repairs_total", cause="hole") == before + 1
    await flawless(stage, publisher.ledger, names)


async def test_run_end_lost_at_a_bursts_end_is_found(stage: Stage, pair: Pair, session: str) -> None:
    """No later message shows that the last one is missing, a heads notice does (failure catalogue R22)."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 2)
    before = await pair.far.metric("repairs_total")
    pair.proxy.drop_message(is_message_of(b'"kind":"run_end"'))

    await _burst(stage, publisher, 40)
    await publisher.publish({"kind": "run_end", "run": "r", "reason": "stop"})
    seconds = await arrived(stage, publisher.ledger, names)

    assert pair.proxy.counts["messages_dropped"] == 1
    assert seconds <= HEAL_SECONDS
    assert await pair.far.metric("repairs_total") > before
    await flawless(stage, publisher.ledger, names)


async def test_last_words_lost_before_the_run_end_come_before_it(stage: Stage, pair: Pair, session: str) -> None:
    """The end is there and the words are not: it waits for them (failure catalogue L12)."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 2)
    pair.proxy.drop_message(is_message_of(b"last words"))
    before = pair.proxy.counts["messages_dropped"]

    await publisher.publish({"kind": "delta", "run": "r", "text": "first words, "})
    await publisher.publish({"kind": "delta", "run": "r", "text": "last words"})
    await publisher.publish({"kind": "run_end", "run": "r", "reason": "stop"})
    await arrived(stage, publisher.ledger, names)

    assert pair.proxy.counts["messages_dropped"] == before + 1
    await flawless(stage, publisher.ledger, names)


@pytest.mark.parametrize("is_notice_lost", [False, True])
async def test_only_message_of_a_quiet_session_is_found(
    stage: Stage, pair: Pair, session: str, is_notice_lost: bool
) -> None:
    """Also when the first notice of it is lost as well: there is a second one."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far])
    pair.proxy.drop_message(is_message_of(b'"seq":1,'))
    if is_notice_lost:
        key = quote(session, safe="").encode()
        pair.proxy.drop_message(lambda message: message.startswith(b"1h") and key in message)

    await publisher.publish(delta("r", stage.rng))
    seconds = await arrived(stage, publisher.ledger, names)
    # A renewal may have found it before the notice was due; the fault must hit all the same.
    await asyncio.wait_for(pair.proxy.all_hit(), 5)

    assert pair.proxy.counts["messages_dropped"] == 1 + is_notice_lost
    assert seconds <= HEAL_SECONDS
    await flawless(stage, publisher.ledger, names)


async def test_every_message_twice_is_delivered_once(stage: Stage, pair: Pair, session: str) -> None:
    """A repeat on the bus is dropped by its seq."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 3)
    pair.proxy.copies = 2

    await _burst(stage, publisher, 100)

    await flawless(stage, publisher.ledger, names)
    assert pair.proxy.counts["messages_doubled"] == 100


async def test_subscription_cut_while_messages_come(stage: Stage, pair: Pair, session: str) -> None:
    """Failure catalogue R01: what was published meanwhile and after comes once each, and the counter rises by one."""
    publishers = [stage.publisher([pair.near], f"{session}-{number}") for number in range(3)]
    names = [(await seat(stage, publisher.session, [pair.far]))[0] for publisher in publishers]
    for publisher in publishers:
        await _burst(stage, publisher, 5)
    before = await pair.far.metric("bus_reconnects_total")
    pair.proxy.is_refusing = True

    assert pair.proxy.cut(Links.SUBSCRIPTIONS) == 1
    for publisher in publishers:
        await _burst(stage, publisher, 3)
    for publisher, name in zip(publishers, names, strict=True):
        await arrived(stage, publisher.ledger, [name], 4)  # from the log: the subscription is still down
    assert await pair.far.metric("subscription_up") == 0
    pair.proxy.is_refusing = False
    await _until_subscribed(pair.far)
    for publisher in publishers:
        await _burst(stage, publisher, 1)

    for publisher, name in zip(publishers, names, strict=True):
        await flawless(stage, publisher.ledger, [name])
    assert await pair.far.metric("bus_reconnects_total") == before + 1


async def test_subscription_killed_twenty_times_in_a_row(stage: Stage, pair: Pair, session: str) -> None:
    """By the server itself, in mid-stream (failure catalogue R01)."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 2)
    killed = 0

    async with asyncio.timeout(20), stage.flow(publisher, per_second=200):
        while killed < 20:
            killed += pair.server.ask("CLIENT", "KILL", "TYPE", "pubsub")
            await asyncio.sleep(0.1)

    await flawless(stage, publisher.ledger, names)


async def test_half_open_subscription_is_replaced(stage: Stage, pair: Pair, session: str) -> None:
    """Failure catalogue R02: no error, no end, just silence. The gauge says so, the log fills in."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 2)
    await _burst(stage, publisher, 3)
    await arrived(stage, publisher.ledger, names)
    before = pair.proxy.counts["subscriptions"]

    pair.proxy.stall(Links.SUBSCRIPTIONS)
    await _burst(stage, publisher, 3)
    await _until_subscribed(pair.far, False)
    await arrived(stage, publisher.ledger, names, 6)
    pair.proxy.resume()
    await _until_subscribed(pair.far)
    await _burst(stage, publisher, 3)

    await flawless(stage, publisher.ledger, names)
    assert pair.proxy.counts["stalled_reads"] >= 1
    assert pair.proxy.counts["subscriptions"] > before


async def test_server_ends_a_subscription_that_lags(stage: Stage, pair: Pair, session: str) -> None:
    """Failure catalogue R04: its output buffer overran. All sessions are complete afterwards."""
    pair.server.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 262144 0 0")
    before = pair.server.info("stats")["client_output_buffer_limit_disconnections"]
    publishers = [stage.publisher([pair.near], f"{session}-{number}") for number in range(10)]
    names = [(await seat(stage, publisher.session, [pair.far]))[0] for publisher in publishers]

    pair.proxy.stall(Links.SUBSCRIPTIONS)
    for publisher in publishers:
        for _ in range(8):
            await publisher.publish(*(delta("r", stage.rng, 400) for _ in range(16)))
    pair.proxy.resume()

    assert pair.server.info("stats")["client_output_buffer_limit_disconnections"] > before
    pair.server.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 33554432 8388608 60")
    for publisher, name in zip(publishers, names, strict=True):
        await flawless(stage, publisher.ledger, [name])


async def test_what_left_the_log_meanwhile_is_announced(stage: Stage, pair: Pair, session: str) -> None:
    """Failure catalogue R03: repaired from a log that was trimmed; the gap is exactly what is missing."""
    publisher = stage.publisher([pair.near], session)
    names = await seat(stage, session, [pair.far], 2)
    await _burst(stage, publisher, 5)
    await arrived(stage, publisher.ledger, names)

    pair.proxy.stall()
    for _ in range(5):
        await publisher.publish(*({"kind": "data", "n": n} for n in range(100)))  # nothing rebuilds these
    assert pair.proxy.cut(Links.SUBSCRIPTIONS) == 1
    pair.proxy.resume()
    await arrived(stage, publisher.ledger, names)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    for verdict in verdicts:
        announced = [[first, last] for first, last, reason in verdict.gap_ranges if reason == "evicted"]
        assert announced == verdict.raw["missing"] != []


async def _until_subscribed(gateway: Gateway, is_up: bool = True, seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while await gateway.metric("subscription_up") != is_up:
        assert time.monotonic() < deadline, f"subscription of {gateway.name} not {is_up} within {seconds} s"
        await asyncio.sleep(0.05)
