"""Keys that vanish under running gateways, and routes that must not exist yet: found, repaired, announced (G6, G10)."""

import asyncio
import time
from typing import Any

import pytest

from loadtest.plain_http import HttpConnection, NoAnswer
from loadtest.processes import Gateway, Server, free_port
from loadtest.publisher import delta
from loadtest.scenes import arrived, flawless, seat
from loadtest.stage import Stage, assert_flawless

pytestmark = pytest.mark.fault

RENEW_SECONDS = 2
"""Of stage.SHORT_TIMES."""


async def test_routes_that_vanish_are_claimed_again(stage: Stage) -> None:
    """Failure catalogue R13: alive sockets without a route have it again within one renewal, and stay open."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    sessions = [f"s{number}" for number in range(5)]
    publishers = [stage.publisher(gateways, session) for session in sessions]
    names = {session: await seat(stage, session, gateways, 10) for session in sessions}

    gone = sum(server.ask("DEL", f"rr:{{default:{s}}}:routes", f"rr:{{default:{s}}}:gws") for s in sessions)
    await _until_routed(gateways[0], sessions, 10, RENEW_SECONDS + 1)
    for publisher in publishers:
        await publisher.publish(delta("r", stage.rng))

    assert gone == 10
    for publisher in publishers:
        verdicts = await flawless(stage, publisher.ledger, names[publisher.session])
        assert not any(verdict.closes for verdict in verdicts)
        assert publisher.live == [True]


@pytest.mark.parametrize("loss", ["meta", "everything"])
async def test_sequence_that_begins_again_is_another_epoch(stage: Stage, loss: str) -> None:
    """Failure catalogue R18: who was at 45, connected or away, hears of a new epoch before its seq 1."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    publisher = stage.publisher(gateways, "s")
    names = await seat(stage, "s", gateways, 50)
    away = (await seat(stage, "s", gateways, prefix="away"))[0]
    for _ in range(45):
        await publisher.publish(delta("r", stage.rng))
    await arrived(stage, publisher.ledger, [*names, away])
    cursor = f"{publisher.ledger.line}.45"
    await stage.witness.ask("close", names=[away])

    server.ask(*(("DEL", "rr:{default:s}:meta") if loss == "meta" else ("FLUSHALL",)))
    for _ in range(3):
        await publisher.publish(delta("r2", stage.rng))
    names += await seat(stage, "s", gateways, prefix="back", cursor=cursor)
    await stage.witness.wait(10, names, gaps=1)
    await arrived(stage, publisher.ledger, names)
    await _until_routed(gateways[0], ["s"], 51, RENEW_SECONDS + 1)

    verdicts = await stage.witness.judge(publisher.ledger, names)
    assert_flawless(verdicts, may_gap=True)
    assert publisher.counts["producer_unknown"] == 1
    assert [[(1, 45)]] * 51 == [[(first, last) for first, last, _ in v.gap_ranges] for v in verdicts]
    assert [3] * 51 == [verdict.applied for verdict in verdicts]
    with server.client() as client:
        assert [b"1-0", b"2-0", b"3-0"] == [entry[0] for entry in client.xrange("rr:{default:s}:log")]


async def test_no_route_before_the_subscription_is_confirmed(stage: Stage) -> None:
    """Failure catalogue R17: until SUBSCRIBE is answered the gateway lets nobody in, and no route names it."""
    server = stage.server()
    proxy = await stage.proxy(server)
    proxy.subscribe_delay_seconds = 0.5
    near, port = await stage.gateway(server.url), free_port()
    publisher = stage.publisher([near], "s")
    fresh = asyncio.create_task(stage.gateway(proxy.url, port=port))
    asking = HttpConnection(f"http://127.0.0.1:{port}")
    refused = 0

    while not fresh.done():
        try:
            answer = await asking.ask("GET", "/v1/sessions/s/ws?client=c&from=start")
        except NoAnswer:
            await asyncio.sleep(0.02)
            continue
        if answer.status == 503:
            refused += 1
            assert not server.ask("EXISTS", "rr:{default:s}:routes")
        await asyncio.sleep(0.05)
    asking.close()
    await publisher.publish(delta("r", stage.rng))
    names = await seat(stage, "s", [await fresh])
    await publisher.publish(delta("r", stage.rng))

    await flawless(stage, publisher.ledger, names)
    assert refused >= 3


async def test_claim_that_a_frozen_server_carries_out_late_leaves_no_route(stage: Stage) -> None:
    """The client was told 503 long ago; the server's buffer still has the claim, and its lease would begin then."""
    server = stage.server()
    proxy = await stage.proxy(server)
    settings = {"redis__call_timeout_seconds": "0.4", "redis__deadline_seconds": "1"}
    leases = {"routes__lease_seconds": "60", "routes__renew_seconds": "20"}
    gateway = await stage.gateway(proxy.url, **settings, **leases)
    connection = HttpConnection(gateway.url)

    def freeze_at_claim(command: bytes) -> bool:
        if b"EVALSHA" in command and b"ghost" in command and not is_frozen.is_set():
            is_frozen.set()
            server.freeze()
        return False

    is_frozen = asyncio.Event()
    proxy.lose_reply(freeze_at_claim)
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    answer = await connection.ask("GET", "/v1/sessions/s/ws?client=ghost", headers=upgrade | key)
    connection.close()
    await asyncio.sleep(0.5)
    server.thaw()

    assert (is_frozen.is_set(), answer.status) == (True, 503)
    deadline = time.monotonic() + 25  # it is given back for half a minute
    while not server.ask("HEXISTS", "rr:{default:s}:meta", "gen") or server.ask("EXISTS", "rr:{default:s}:routes"):
        assert time.monotonic() < deadline, server.ask("HGETALL", "rr:{default:s}:routes")
        await asyncio.sleep(0.05)
    assert not server.ask("EXISTS", "rr:{default:s}:gws")
    assert await gateway.metric("connections") == 0


async def test_nothing_is_kept_without_bound(stage: Stage) -> None:
    """Failure catalogue R23: every key of ours has an end, and no log is longer than its bound."""
    server = stage.server()
    await _fill(stage, server, 20)
    lengths = [server.ask("XLEN", key) for key in _keys(server) if key.endswith(b":log")]

    assert [100] * 20 == lengths
    assert [] == [key for key in _keys(server) if server.ask("PTTL", key) == -1]


@pytest.mark.soak
async def test_logs_go_by_themselves(stage: Stage) -> None:
    """Failure catalogue R23: 200 sessions, all closed: their logs are gone when their time is over."""
    server = stage.server()
    before = set(_keys(server))
    await _fill(stage, server, 200)
    deadline = time.monotonic() + 5 * 4 / 3 + 1
    while left := [key for key in _keys(server) if key.endswith(b":log")]:
        assert time.monotonic() < deadline, f"still there: {left[:3]}"
        await asyncio.sleep(0.1)

    left = [key for key in set(_keys(server)) - before if key.startswith(b"rr:{default:s")]
    parts = {key.partition(b"}:")[2].partition(b":")[0] for key in left}
    assert {b"meta", b"clients", b"text"} >= parts  # a run's text stays longer than the log, with an end of its own


async def _fill(stage: Stage, server: Server, count: int) -> None:
    """So many sessions with a log of 100 messages that lives 5 s, each with a reader that came and left."""
    settings = {"retention__max_messages": "100", "retention__ttl_seconds": "5"}
    gateways = await stage.start_gateways(2, server.url, **settings)
    names = [(await seat(stage, f"s{number}", gateways))[0] for number in range(count)]

    async def fill(number: int) -> None:
        publisher = stage.publisher(gateways, f"s{number}")
        await publisher.publish(*(delta("r", stage.rng, 40) for _ in range(100)))
        await publisher.publish(*(delta("r", stage.rng) for _ in range(50)), {"kind": "run_end", "run": "r"})

    for first in range(0, count, 10):
        await asyncio.gather(*(fill(number) for number in range(first, first + 10)))
    await stage.witness.wait(10, names, position=151)
    await stage.witness.ask("close", names=names)


def _keys(server: Server) -> list[bytes]:
    with server.client() as client:
        return [bytes(key) for key in client.scan_iter("rr:*", count=1000)]


async def _until_routed(gateway: Gateway, sessions: list[str], count: int, seconds: float) -> None:
    """Each of these sessions has a live route for so many clients."""
    deadline = time.monotonic() + seconds
    connection = HttpConnection(gateway.url)
    try:
        for session in sessions:
            while (found := await _routes(connection, session)) < count:
                assert time.monotonic() < deadline, f"{session} has {found} routes after {seconds} s, not {count}"
                await asyncio.sleep(0.05)
    finally:
        connection.close()


async def _routes(connection: HttpConnection, session: str) -> int:
    answer = await connection.ask("GET", f"/v1/sessions/{session}")
    clients: list[Any] = answer.json()["clients"] if answer.status == 200 else []
    return len(clients)
