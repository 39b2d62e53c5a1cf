"""SSE on real gateways with faults: the sequence a browser sees is the log, whoever dies, drains or chokes."""

import asyncio
import ctypes
import os
import socket
import struct
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway, Server
from loadtest.publisher import Ledger, delta
from loadtest.stage import Stage, assert_flawless
from tests.integration.event_source import EventSource, browsing, streaming
from tests.integration.test_snapshots import SMALL, Text, write

pytestmark = pytest.mark.fault

EVENTS = "/v1/sessions/s/events?client=me"


def assert_exact(source: EventSource, ledger: Ledger, first: int = 1) -> None:
    """Every seq once, in order, nothing lost, and the text of each run to the byte."""
    assert source.seqs == list(range(first, ledger.head + 1))
    assert source.texts() == ledger.texts(first)


async def until_empty(gateway: Gateway, server: Server) -> None:
    """No connection, no route."""
    async with asyncio.timeout(15):
        while await gateway.metric("connections") or server.ask("HLEN", "rr:{default:s}:routes"):
            await asyncio.sleep(0.05)


# ---- gateways that end ----------------------------------------------------------------------------------------------


async def test_a_browser_goes_on_at_another_gateway_after_a_kill(stage: Stage) -> None:
    """Kill -9 again and again under load: Last-Event-ID is all that the browser has."""
    gateways = await stage.start_gateways(3, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    source = EventSource([gateway.url for gateway in gateways], EVENTS + "&from=start", retry_ms=50)
    async with browsing(source):
        async with stage.flow(publisher, per_second=200):
            for victim in gateways[:2]:
                await source.until_seq(len(source.seqs) + 50)
                await victim.kill()
                await source.until_seq(len(source.seqs) + 50)
                await victim.start()
        await source.until_seq(publisher.ledger.head)

    assert_exact(source, publisher.ledger)
    assert source.attempts >= 2
    assert not [event for event in source.events if event.name == "gap"]


async def test_the_same_id_is_the_same_message_on_every_gateway(stage: Stage) -> None:
    """Failure catalogue S03."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    async with (
        streaming(gateways[0].url, EVENTS + "1") as one,
        streaming(gateways[1].url, EVENTS + "2") as two,
    ):
        for stream in (one, two):
            await stream.event("welcome")
        for _ in range(20):
            await publisher.publish(delta("r", stage.rng, 3))
        for stream in (one, two):
            await stream.until_seq(20)

    assert {event.last_id: event.data for event in one.named("message")} == {
        event.last_id: event.data for event in two.named("message")
    }


async def test_a_drain_gives_each_browser_its_slot_and_none_misses_anything(stage: Stage) -> None:
    """Failure catalogue K01, K02: `retry:` differs, `close` 1012, the end; then the other gateway."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways[1:], "s")
    urls = [gateway.url for gateway in gateways]
    sources = [EventSource(urls, f"/v1/sessions/s/events?client=c{n}&from=start", retry_ms=50) for n in range(12)]
    running = [asyncio.create_task(source.run()) for source in sources]
    try:
        async with stage.flow(publisher, per_second=100):
            for source in sources:
                await source.until_seq(10)
            gateways[0].terminate()
            assert await gateways[0].wait(12) == 0
            for source in sources:
                await source.until_seq(len(source.seqs) + 30)
        for source in sources:
            await source.until_seq(publisher.ledger.head)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    for source in sources:
        assert_exact(source, publisher.ledger)
        closes = [event.json for event in source.events if event.name == "close"]
        assert closes == [{"code": 1012, "reason": "drain"}]
    slots = [source.retries_ms[0] for source in sources]
    assert all(slot is not None and 1 <= slot <= 2_000 for slot in slots)
    assert len(set(slots)) > len(slots) // 2


async def test_a_hundred_reconnects_at_random_moments_leave_no_seam(stage: Stage) -> None:
    """Failure catalogue R20: replay and live join exactly, at whatever gateway, while 300 messages a second come."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    seqs: list[int] = []
    last_id = ""
    async with stage.flow(publisher, per_second=300):
        for number in range(100):
            headers = {"Last-Event-ID": last_id} if last_id else {}
            async with streaming(gateways[number % 2].url, EVENTS + "&from=start", headers) as stream:
                await stream.event("welcome")
                with suppress(TimeoutError):
                    await stream.to_end(stage.rng.uniform(0, 0.1))
            seqs += stream.seqs
            last_id = stream.events[-1].last_id or last_id
            assert not stream.named("gap")
    async with streaming(gateways[0].url, EVENTS, {"Last-Event-ID": last_id}) as stream:
        await stream.event("welcome")
        if publisher.ledger.head > (seqs or [0])[-1]:
            await stream.until_seq(publisher.ledger.head)

    assert seqs + stream.seqs == list(range(1, publisher.ledger.head + 1))


async def test_a_client_spread_over_three_gateways_needs_no_stickiness(stage: Stage) -> None:
    """Failure catalogue K14: the stream at one, what the user says at the second, the next stream at the third."""
    one, two, three = await stage.start_gateways(3, stage.server().url)
    publisher = stage.publisher([two], "s")
    async with streaming(one.url, EVENTS) as stream:
        welcome = await stream.event("welcome")
        await publisher.publish({"kind": "run_start", "run": "r"}, delta("r", stage.rng, 3))
        await stream.until_seq(2)
    said = {"client": "me", "seq": welcome.json["payload"]["input_seq"] + 1, "payload": {"text": "Stop, please"}}
    accepted = await ask_once(two.url, "POST", "/v1/sessions/s/input", said)
    repeated = await ask_once(three.url, "POST", "/v1/sessions/s/input", said)
    interrupt = {"client": "me", "kind": "interrupt", "run": "r", "seen": {"seq": 2, "at": 1}}
    interrupted = await ask_once(two.url, "POST", "/v1/sessions/s/control", interrupt)
    async with streaming(three.url, EVENTS, {"Last-Event-ID": stream.events[-1].last_id}) as stream:
        await stream.until(lambda it: [event for event in it.events if '"run_end"' in event.data])

    assert [answer.status for answer in (accepted, repeated, interrupted)] == [200, 200, 200]
    assert repeated.json()["repeat"]
    assert stream.seqs[0] == 3
    assert (await ask_once(one.url, "GET", "/v1/sessions/s/messages?limit=1")).status == 200


# ---- readers that are slow, or gone ---------------------------------------------------------------------------------


async def test_a_slow_reader_loses_nothing_and_delays_nobody(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, retention__max_bytes="8 MiB", retention__max_messages="10000")
    publisher = stage.publisher([gateway], "s")
    await stage.witness.open({"name": "fast", "session": "s", "urls": [gateway.url]})
    await stage.witness.wait(10, welcomes=1)
    async with streaming(gateway.url, EVENTS, receive_bytes=4096) as slow:
        await slow.event("welcome")
        for _ in range(60):
            await publisher.publish(*(delta("r", stage.rng, 300) for _ in range(20)))
        await stage.witness.wait(10, position=publisher.ledger.head)
        assert await gateway.metric("connections", state="lagging") == 1
        unsent = await gateway.metric("unsent_bytes")
        await slow.until_seq(publisher.ledger.head, seconds=30)

    assert unsent < 600_000
    assert slow.seqs == list(range(1, publisher.ledger.head + 1))
    assert slow.text == publisher.ledger.texts()["r"]
    assert len(slow.named("message")) < publisher.ledger.head  # merged, as on a socket
    assert_flawless(await stage.witness.judge(publisher.ledger))


async def test_who_stops_reading_is_ended_and_may_come_back_where_it_was(stage: Stage) -> None:
    """Its kernel still answers, so only what it does not take tells."""
    server = stage.server()
    gateway = await stage.gateway(
        server.url,
        retention__max_bytes="8 MiB",
        retention__max_messages="10000",
        liveness__stopped_reading_seconds="2",
    )
    publisher = stage.publisher([gateway], "s")
    async with streaming(gateway.url, EVENTS, receive_bytes=4096) as stuck:
        await stuck.event("welcome")
        for _ in range(30):
            await publisher.publish(*(delta("r", stage.rng, 300) for _ in range(20)))
        await until_empty(gateway, server)
        with suppress(AssertionError):
            await stuck.until_seq(publisher.ledger.head)
    headers = {"Last-Event-ID": stuck.events[-1].last_id}
    async with streaming(gateway.url, EVENTS, headers) as back:
        await back.until_seq(publisher.ledger.head)

    assert stuck.seqs + back.seqs == list(range(1, publisher.ledger.head + 1))
    assert await gateway.metric("closes_total", reason="stopped_reading") == 1


async def test_a_reader_below_the_log_gets_snapshots_and_the_last_has_the_id(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **SMALL)
    publisher, text = stage.publisher([gateway], "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "data", "n": 1}, {"kind": "run_start", "run": "r"})
    await write(publisher, text, 300, 10)
    line = publisher.ledger.line
    async with streaming(gateway.url, EVENTS, {"Last-Event-ID": f"{line}.0"}) as stream:
        await stream.until_seq(publisher.ledger.head)

    gap, *snapshots = [event for event in stream.events if event.name in ("gap", "snapshot")]
    assert (gap.json["payload"]["first"], gap.json["payload"]["last"], gap.json["payload"]["reason"]) == (
        1,
        1,
        "evicted",
    )
    assert gap.last_id == f"{line}.1"
    *parts, last = snapshots
    assert {part.last_id for part in parts} == {f"{line}.1"}  # half a snapshot moves nobody
    assert last.last_id == last.json["payload"]["cursor"] == f"{line}.{stream.seqs[0] - 1}"
    rebuilt = "".join(snapshot.json["payload"]["text"] for snapshot in snapshots)
    assert rebuilt + stream.text == text.text


class _Filter(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("program", ctypes.c_void_p))


def turn_deaf(fileno: int) -> None:
    """From here on the kernel drops whatever arrives for this socket, and so acknowledges nothing: a half-dead link."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0
    program = _Filter(1, ctypes.addressof(drop_all))
    with socket.socket(fileno=os.dup(fileno)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_ATTACH_FILTER", 26), bytes(program))


@pytest.mark.parametrize("size", [0, 3, 2_000])
async def test_a_peer_that_acknowledges_nothing_is_given_up(stage: Stage, size: int) -> None:
    """Nobody hears an EventSource, so its kernel is asked; one that answers stays, however silent its page is."""
    gateway = await stage.gateway(
        stage.server().url,
        liveness__heartbeat_seconds="1",
        liveness__silence_seconds="1",
        liveness__answer_within_seconds="2",
    )
    publisher = stage.publisher([gateway], "s")
    async with (
        streaming(gateway.url, "/v1/sessions/s/events?client=well") as well,
        streaming(gateway.url, "/v1/sessions/s/events?client=deaf") as deaf,
    ):
        for stream in (well, deaf):
            await stream.event("welcome")
        turn_deaf(deaf.writer.get_extra_info("socket").fileno())
        async with asyncio.timeout(20):
            while await gateway.metric("connections") > 1:
                if size:
                    await publisher.publish(delta("r", stage.rng, size))
                    await well.until_seq(publisher.ledger.head)
                await asyncio.sleep(0.1)
        await asyncio.sleep(3)  # so long one that is well would have been given up, too
        await publisher.publish(delta("r", stage.rng, 3))
        await well.until_seq(publisher.ledger.head)

    assert await gateway.metric("closes_total", reason="heartbeat") == 1


# ---- proxies --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def impatient_proxy(gateway: Gateway, silence_seconds: float) -> AsyncIterator[tuple[str, list[str]]]:
    """Cuts what brings no byte for so long. Yields its URL and whom it cut."""
    cut: list[str] = []

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        try:
            while True:
                async with asyncio.timeout(silence_seconds if name == "down" else None):
                    data = await reader.read(65536)
                if not data:
                    break
                writer.write(data)
        except TimeoutError:
            cut.append(name)
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(gateway.url)
        up_reader, up_writer = await asyncio.open_connection(parts.hostname, parts.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(carry(reader, up_writer, "up"))
            group.create_task(carry(up_reader, writer, "down"))

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}", cut
    finally:
        proxy.close()


async def test_comments_keep_a_silent_stream_alive_through_an_impatient_proxy(stage: Stage) -> None:
    """Failure catalogue K10: cut after 2 s of silence, a comment every 0.8 s, no traffic; S08: none is an event."""
    gateway = await stage.gateway(
        stage.server().url, liveness__heartbeat_seconds="0.8", liveness__heartbeat_min_seconds="0.5"
    )
    publisher = stage.publisher([gateway], "s")
    async with impatient_proxy(gateway, 2) as (url, cut), streaming(url, EVENTS) as stream:
        await stream.event("welcome")
        began = time.monotonic()
        await stream.until(lambda it: it.parser.comments and time.monotonic() > began + 8, seconds=20)
        await publisher.publish(delta("r", stage.rng, 3))
        await stream.until_seq(1)
        assert not cut

    assert [event.name for event in stream.events] == ["welcome", "message"]


async def test_requests_that_break_off_leave_nothing(stage: Stage) -> None:
    """Failure catalogue R26: aborted at every stage, streams and polls; places and routes are as before."""
    server = stage.server()
    gateway = await stage.gateway(server.url, server__max_connections="20", server__header_timeout_seconds="2")
    clients_before = len(server.ask("CLIENT", "LIST").splitlines())
    address = (urlsplit(gateway.url).hostname, urlsplit(gateway.url).port)
    requests = (
        b"GET /v1/sessions/s/events?client=c%d HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/sessions/s/messages?wait=50&client=c%d HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    for number in range(240):
        with socket.create_connection(address, timeout=5) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            text = requests[number % 2] % number
            match number // 2 % 4:
                case 0:
                    pass
                case 1:
                    sock.sendall(text[: len(text) // 2])
                case 2:
                    sock.sendall(text)
                case _:
                    sock.sendall(text)
                    if number % 2 == 0:
                        assert sock.recv(1) in (b"H", b"")
                    else:
                        await asyncio.sleep(0.02)
        if number % 20 == 19:
            await asyncio.sleep(0.05)

    await until_empty(gateway, server)
    assert len(server.ask("CLIENT", "LIST").splitlines()) == clients_before
    for number in range(20):  # every place is free
        answer = await ask_once(gateway.url, "GET", f"/v1/sessions/s/messages?wait=0.1&client=after{number}")
        assert answer.status == 200


async def test_browsers_that_leave_while_they_are_told_to_come_later_are_no_fault(stage: Stage) -> None:
    """The stage looks into the log."""
    gateway = await stage.gateway(stage.server().url, server__max_connections="1")
    async with streaming(gateway.url, EVENTS) as first:
        await first.event("welcome")
        address = (urlsplit(gateway.url).hostname, urlsplit(gateway.url).port)
        for _ in range(200):
            with socket.create_connection(address, timeout=5) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                sock.sendall(b"GET /v1/sessions/s/events HTTP/1.1\r\nHost: x\r\n\r\n")

    async with asyncio.timeout(15):
        while await gateway.metric("connects_total", outcome="busy") == 0:
            await asyncio.sleep(0.05)
