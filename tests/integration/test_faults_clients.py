"""Clients that move, double, vanish and come in crowds: one position, one owner, nobody else's text (G6, G11)."""

import asyncio
import socket
import struct
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import pytest

from loadtest.processes import Gateway, Server
from loadtest.publisher import Ledger, Publisher
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict

pytestmark = pytest.mark.fault


def spec(name: str, gateways: list[Gateway], **fields: Any) -> dict[str, Any]:
    return {"name": name, "session": "s", "urls": [gateway.url for gateway in gateways], **fields}


def route_of(server: Server, client: str, session: str = "s") -> bytes:
    return bytes(server.ask("HGET", f"rr:{{default:{session}}}:routes", client) or b"")


async def judge_all(stage: Stage, ledger: Ledger, names: list[str]) -> None:
    await stage.witness.wait(10, names, position=ledger.head)
    verdicts = await stage.witness.judge(ledger, names)
    assert_flawless(verdicts)
    assert_texts(verdicts, ledger)


# ---- moving: make before break ---------------------------------------------------------------------------------


async def test_client_that_moves_all_the_time_misses_nothing(stage: Stage) -> None:
    """Every 300 ms to another gateway with `replaces=`; the old socket is told `moved`, the text has no seam."""
    gateways = await stage.start_gateways(3, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    movers = ["plain", "acking"]
    await stage.witness.open(
        spec("plain", gateways, move_every_ms=300), spec("acking", gateways, move_every_ms=300, is_acking=True)
    )
    await stage.witness.wait(10, welcomes=1)

    async with stage.flow(publisher, per_second=250):
        await asyncio.sleep(3.5)

    await judge_all(stage, publisher.ledger, movers)
    for verdict in await stage.witness.judge(names=movers):
        assert verdict.count("moves") >= 8
        assert verdict.closes.keys() == {"1000"}
        assert {event["reason"] for event in verdict.events("closed")} == {"moved"}
        assert not verdict.raw["refusals"]


@pytest.mark.parametrize("kind", [b"1v", b"1p"], ids=["moved", "replacing"])
async def test_move_with_its_notice_lost(stage: Stage, kind: bytes) -> None:
    """The old gateway never hears of the move: the next renewal ends the old socket, the client has everything."""
    proxy = await stage.proxy(stage.server())
    old, new = await stage.start_gateways(2, proxy.url)
    publisher = stage.publisher([old, new], "s")
    await stage.witness.open(spec("r", [old]))
    await stage.witness.wait(5, welcomes=1)
    proxy.drop_message(lambda payload: payload.startswith(kind))

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.2)
        assert (await stage.witness.ask("move", name="r", url=new.url))["is_open"]
        await asyncio.wait_for(proxy.hit.wait(), 5)
        await asyncio.sleep(0.2)
        deadline = time.monotonic() + 8
        while (verdict := (await stage.witness.judge(names=["r"]))[0]).raw["open_sockets"] != 1:
            assert time.monotonic() < deadline, "the old socket is still open"
            await asyncio.sleep(0.1)

    assert proxy.counts["messages_dropped"] == 1
    assert sum(verdict.closes.values()) == 1
    assert verdict.closes.keys() <= {"1000", "4409"}
    await judge_all(stage, publisher.ledger, ["r"])


@pytest.mark.parametrize("is_notice_lost", [False, True], ids=["told", "notice-lost"])
async def test_new_socket_that_dies_before_it_is_live(stage: Stage, is_notice_lost: bool) -> None:
    """`previous` becomes the route again, with a new generation, also when nobody could tell it."""
    server = stage.server()
    proxy = await stage.proxy(server)
    times = {"routes__lease_seconds": "3", "routes__renew_seconds": "1", "routes__previous_seconds": "1.5"}
    old, new = await stage.start_gateways(2, proxy.url, **times)
    publisher = stage.publisher([old, new], "s")
    for _ in range(14):
        await publisher.publish({"kind": "data", "text": "z" * 60_000})
    await stage.witness.open(spec("old", [old], client="c"))
    await stage.witness.wait(5, position=14)
    before = (await stage.witness.judge(names=["old"]))[0].raw["connection"]
    first_route = route_of(server, "c")
    assert before.encode() in first_route
    if is_notice_lost:
        proxy.drop_message(lambda payload: payload.startswith(b"1t"))

    # It has 840 kB to read first, at 8 kB a second: it will not be live before it is reset.
    await stage.witness.open(
        spec(
            "new",
            [new],
            client="c",
            cursor=f"{publisher.ledger.line}.0",
            replaces=before,
            bytes_per_second=8_000,
            receive_buffer_bytes=4_096,
            is_staying_away=True,
        )
    )
    await stage.witness.wait(5, ["new"], welcomes=1)
    await publisher.publish({"kind": "data", "n": 1})
    await stage.witness.wait(3, ["old"], position=15)
    new_connection = (await stage.witness.judge(names=["new"]))[0].raw["connection"]
    assert new_connection.encode() in route_of(server, "c")
    await stage.witness.ask("drop", names=["new"])
    await stage.witness.wait(3, ["new"], ended=True)
    deadline = time.monotonic() + 6
    while new_connection.encode() in (route := route_of(server, "c")):
        assert time.monotonic() < deadline, "the route still names the dead socket"
        await asyncio.sleep(0.05)
    # Longer than `previous` may last and than a renewal takes: the old socket is no guest, it is the owner.
    await asyncio.sleep(2)
    await publisher.publish({"kind": "data", "n": 2})

    await judge_all(stage, publisher.ledger, ["old"])
    verdict = (await stage.witness.judge(names=["old"]))[0]
    assert not verdict.closes
    assert verdict.raw["connection"] == before
    assert before.encode() in route
    assert route != first_route
    assert proxy.counts["messages_dropped"] == is_notice_lost


# ---- the same client twice -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gateways", [1, 2])
async def test_two_connects_of_one_client_at_once(stage: Stage, gateways: int) -> None:
    """Failure catalogue R12, A04: one stays and gets everything, the other sees 4409, whichever came first."""
    server = stage.server()
    running = await stage.start_gateways(gateways, server.url)
    publisher = stage.publisher(running, "s")
    for number in range(12):
        pair = [f"{number}a", f"{number}b"]
        await stage.witness.open(
            *(
                spec(name, [gateway], client="twin", is_staying_away=True)
                for name, gateway in zip(pair, (running[0], running[-1]), strict=True)
            )
        )
        deadline = time.monotonic() + 5
        ended: list[Verdict] = []
        while not ended:
            assert time.monotonic() < deadline, "both sockets are still open, or never were"
            await asyncio.sleep(0.01)
            verdicts = await stage.witness.judge(names=pair)
            ended = [verdict for verdict in verdicts if verdict.raw["ended"]]
        assert len(ended) == 1
        loser, winner = ended[0], next(verdict for verdict in verdicts if not verdict.raw["ended"])
        assert loser.closes == {"4409": 1}
        await stage.witness.wait(5, [winner.name], welcomes=1)
        seqs = await publisher.publish({"kind": "data", "n": number})
        await stage.witness.wait(5, [winner.name], position=seqs[0])
        await asyncio.sleep(0.05)
        survivor = (await stage.witness.judge(publisher.ledger, [winner.name]))[0]
        assert survivor.raw["connection"].encode() in route_of(server, "twin")
        assert not survivor.closes
        assert_flawless([survivor])
        await stage.witness.ask("close", names=pair)

    assert sum([await gateway.metric("takeovers_total", how="supersede") for gateway in running]) >= 12


@pytest.mark.parametrize("gateways", [1, 2])
async def test_late_end_of_an_old_socket_leaves_the_new_route(stage: Stage, gateways: int) -> None:
    """Failure catalogue R12: nobody told the old one that it is superseded; when it ends, the route is another's."""
    server = stage.server()
    proxy = await stage.proxy(server)
    running = await stage.start_gateways(gateways, proxy.url, routes__lease_seconds="60", routes__renew_seconds="20")
    publisher = stage.publisher(running, "s")
    await stage.witness.open(spec("old", [running[0]], client="c", is_staying_away=True))
    await stage.witness.wait(5, welcomes=1)
    proxy.drop_message(lambda payload: payload.startswith(b"1s"))
    await stage.witness.open(spec("new", [running[-1]], client="c"))
    await stage.witness.wait(5, ["new"], welcomes=1)
    await asyncio.wait_for(proxy.hit.wait(), 5)

    await stage.witness.ask("drop", names=["old"])
    await stage.witness.wait(5, ["old"], ended=True)
    deadline = time.monotonic() + 5
    while sum([await gateway.metric("connections") for gateway in running]) > 1:
        assert time.monotonic() < deadline, "the old socket has not ended"
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    seqs = await publisher.publish({"kind": "data", "n": 1})

    await stage.witness.wait(1, ["new"], position=seqs[0])
    verdict = (await stage.witness.judge(publisher.ledger, ["new"]))[0]
    assert_flawless([verdict])
    assert verdict.raw["connection"].encode() in route_of(server, "c")
    assert publisher.live == [True]
    assert proxy.counts["messages_dropped"] == 1


@pytest.mark.parametrize("drops", [70, pytest.param(400, marks=pytest.mark.soak)])
async def test_reconnects_at_random_moments_have_no_seam(stage: Stage, drops: int) -> None:
    """Failure catalogue R19, R20: between replay and live nothing is missing and nothing comes twice."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    names = [f"r{n}" for n in range(4)]
    await stage.witness.open(*(spec(name, gateways, is_acking=n % 2 == 0) for n, name in enumerate(names)))
    await stage.witness.wait(5, welcomes=1)

    async with stage.flow(publisher, per_second=500):
        for _ in range(drops):
            await asyncio.sleep(stage.rng.uniform(0.01, 0.08))
            await stage.witness.ask("drop", names=[stage.rng.choice(names)])

    await judge_all(stage, publisher.ledger, names)
    verdicts = await stage.witness.judge(names=names)
    assert sum(verdict.count("drops") for verdict in verdicts) >= drops // 3
    assert sum(verdict.count("connects") for verdict in verdicts) >= drops // 3


async def test_two_publishers_on_two_gateways_make_one_order(stage: Stage) -> None:
    """Failure catalogue R16: 500 messages each at the same time are exactly 1 to 1000."""
    gateways = await stage.start_gateways(2, stage.server().url)
    ledger = Ledger()
    publishers = [
        stage.publisher([gateway], "s", ledger, name=name) for gateway, name in zip(gateways, ("", "b"), strict=True)
    ]
    await stage.witness.open(spec("r0", gateways), spec("r1", gateways, is_acking=True))
    await stage.witness.wait(5, welcomes=1)

    async def publish(publisher: Publisher) -> None:
        for number in range(100):
            await publisher.publish(*({"kind": "data", "of": publisher.name, "n": number * 5 + n} for n in range(5)))

    await asyncio.gather(*(publish(publisher) for publisher in publishers))

    assert sorted(entry.seq for entry in ledger.entries) == list(range(1, 1001))
    await judge_all(stage, ledger, ["r0", "r1"])


# ---- crowds ----------------------------------------------------------------------------------------------------


async def test_thousand_connects_against_the_cap(stage: Stage) -> None:
    """Failure catalogue K15: in, or 503 with Retry-After before the upgrade; afterwards every place is free again."""
    server = stage.server()
    # Not by their rate (tests/integration/admission): by the places there are.
    gateway = await stage.gateway(server.url, server__max_connections="300", admission__new_per_second="0")
    clients_before = len(server.ask("CLIENT", "LIST").splitlines())

    answer = await stage.witness.ask("storm", urls=[gateway.url], session="storm", count=1_000, at_once=250, seconds=10)

    assert answer["outcomes"] == {"101": 300, "503": 700}
    assert answer["welcomed"] == 300
    assert answer["slowest_seconds"] < 5
    assert await gateway.metric("connections", state="live") == 300
    await stage.witness.ask("calm")
    await _until_empty(gateway)
    again = await stage.witness.ask("storm", urls=[gateway.url], session="storm", count=300, at_once=100, seconds=10)
    assert again["outcomes"] == {"101": 300}
    await stage.witness.ask("calm")
    await _until_empty(gateway)
    assert len(server.ask("CLIENT", "LIST").splitlines()) == clients_before


async def _until_empty(gateway: Gateway) -> None:
    deadline = time.monotonic() + 8
    while await gateway.metric("connections"):
        assert time.monotonic() < deadline, "connections are left"
        await asyncio.sleep(0.05)


async def test_handshakes_that_break_off_leave_nothing(stage: Stage) -> None:
    """Failure catalogue R26: aborted at every stage; places, files, server connections and routes are as before."""
    server = stage.server()
    gateway = await stage.gateway(server.url, server__max_connections="20", server__header_timeout_seconds="2")
    clients_before = len(server.ask("CLIENT", "LIST").splitlines())
    files_before = len(list(Path(f"/proc/{gateway.pid}/fd").iterdir()))
    address = (urlsplit(gateway.url).hostname, urlsplit(gateway.url).port)
    request = (
        b"GET /v1/sessions/s/ws?client=c%d HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    for number in range(240):
        with socket.create_connection(address, timeout=5) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            text = request % number
            match number % 4:
                case 0:
                    pass
                case 1:
                    sock.sendall(text[: len(text) // 2])
                case 2:
                    sock.sendall(text)
                case _:
                    sock.sendall(text)
                    assert sock.recv(1) in (b"H", b"")
        if number % 20 == 19:
            await asyncio.sleep(0.05)

    await _until_empty(gateway)
    deadline = time.monotonic() + 5
    while len(list(Path(f"/proc/{gateway.pid}/fd").iterdir())) > files_before + 2 or server.ask(
        "HLEN", "rr:{default:s}:routes"
    ):
        assert time.monotonic() < deadline, "files or routes are left"
        await asyncio.sleep(0.05)
    answer = await stage.witness.ask("storm", urls=[gateway.url], session="after", count=20, at_once=20, seconds=5)
    assert answer["outcomes"] == {"101": 20}
    await stage.witness.ask("calm")
    assert len(server.ask("CLIENT", "LIST").splitlines()) == clients_before
    assert await gateway.metric("connects_total", outcome="accepted") >= 20 + 60


async def test_sockets_reset_while_much_is_written_to_them(stage: Stage) -> None:
    """Failure catalogue A09: no traceback, no unretrieved exception (the stage looks), and the log has everything."""
    gateway = await stage.gateway(stage.server().url)
    publishers = [stage.publisher([gateway], f"s{n}") for n in range(10)]
    names = [f"r{n}" for n in range(200)]
    await stage.witness.open(
        *(
            {"name": name, "session": f"s{n % 10}", "urls": [gateway.url], "is_staying_away": True}
            for n, name in enumerate(names)
        )
    )
    await stage.witness.wait(10, welcomes=1)

    async def publish(publisher: Publisher) -> None:
        for _ in range(40):
            await publisher.publish(*({"kind": "data", "text": "t" * 1_000} for _ in range(10)))

    publishing = [asyncio.create_task(publish(publisher)) for publisher in publishers]
    for first in range(0, 200, 20):
        await stage.witness.ask("drop", names=names[first : first + 20])
        await asyncio.sleep(0.03)
    await asyncio.gather(*publishing)

    await _until_empty(gateway)
    dropped = await stage.witness.judge(names=names)
    assert sum(verdict.count("drops") for verdict in dropped) == 200
    assert not any(verdict.findings for verdict in dropped)
    await stage.witness.ask("close")
    await stage.witness.open(*({"name": f"again{n}", "session": f"s{n}", "urls": [gateway.url]} for n in range(10)))
    for number, publisher in enumerate(publishers):
        await judge_all(stage, publisher.ledger, [f"again{number}"])


# ---- whose text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [30, pytest.param(250, marks=pytest.mark.soak)])
async def test_nobody_ever_sees_another_ones_text(stage: Stage, rounds: int) -> None:
    """Failure catalogue U06: 50 sessions in 5 tenants with the same names; take-overs, drops, a restart."""
    secret = "a secret of more than thirty-two bytes for tests"
    server = stage.server()
    gateways = await stage.start_gateways(
        3,
        server.url,
        auth__mode="jwt",
        auth__keys=f'[{{"kid": "k", "algorithm": "HS256", "secret": "{secret}"}}]',
    )
    now = int(time.time())
    tokens = {
        tenant: jwt.encode(
            {
                "sub": "u",
                "tenant": tenant,
                "sessions": ["*"],
                "scope": "subscribe publish",
                "iat": now,
                "exp": now + 600,
            },
            secret,
            "HS256",
            {"kid": "k"},
        )
        for tenant in ("t0", "t1", "t2", "t3", "t4")
    }
    owned = [(tenant, f"s{n}") for tenant in tokens for n in range(10)]
    publishers = {
        (tenant, session): stage.publisher(gateways, session, token=tokens[tenant]) for tenant, session in owned
    }
    urls = [gateway.url for gateway in gateways]
    names = {f"{tenant}/{session}": (tenant, session) for tenant, session in owned}
    await stage.witness.open(
        *(
            {"name": name, "session": session, "urls": urls, "client": "c", "token": tokens[tenant]}
            for name, (tenant, session) in names.items()
        )
    )
    await stage.witness.wait(10, welcomes=1)

    stop = asyncio.Event()

    async def publish(share: int) -> None:
        number = 0
        mine = list(publishers.items())[share::5]
        while not stop.is_set():
            number += 1
            (tenant, session), publisher = stage.rng.choice(mine)
            await publisher.publish({"kind": "data", "owner": f"{tenant}/{session}", "n": number})
            await asyncio.sleep(0.005)

    publishing = [asyncio.create_task(publish(share)) for share in range(5)]
    for number in range(rounds):
        await asyncio.sleep(0.1)
        some = stage.rng.sample(list(names), 3)
        if number % 2:
            await stage.witness.ask("drop", names=some)
        else:
            await asyncio.gather(*(stage.witness.ask("move", name=name) for name in some))
        if number % 30 == 15:
            await gateways[0].kill()
            await gateways[0].start()
    stop.set()
    await asyncio.gather(*publishing)

    for name, (tenant, session) in names.items():
        await judge_all(stage, publishers[tenant, session].ledger, [name])
    verdicts = await stage.witness.judge()
    assert sum(verdict.count("drops") for verdict in verdicts) >= rounds // 2
    assert sum(verdict.count("moves") for verdict in verdicts) >= rounds // 2
    assert sum([await gateway.metric("foreign_frames_total") for gateway in gateways]) == 0
