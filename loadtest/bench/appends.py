"""What a published message costs: in the gateway (batches of 100 over HTTP) and in Redis (one item a call)."""

import asyncio
import json
import random
import socket
import time

from gateway.adapters.redis_store import RedisStore, StoreScripts
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.ports import AppendRequest, ProducerRef
from gateway.settings import Settings
from loadtest.bench.cpu import cpu_seconds
from loadtest.bench.publisher import text

BATCH = 100
SESSIONS = 50
REDIS_APPENDS = 50_000
IN_FLIGHT = 64


def cpu_us_per_append(url: str, pid: int, seconds: float) -> float:
    """One keep-alive connection, one request after the other, each a batch for the next session."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as link:
        _post(link, host, 0)
        before, posted, until = cpu_seconds(pid), 0, time.monotonic() + seconds
        while time.monotonic() < until:
            _post(link, host, posted + 1)
            posted += 1
        return (cpu_seconds(pid) - before) * 1e6 / (posted * BATCH)


def _post(link: socket.socket, host: str, number: int) -> None:
    messages = [{"payload": {"kind": "data", "text": text(number * BATCH + place).decode()}} for place in range(BATCH)]
    body = json.dumps({"messages": messages}).encode()
    head = (
        f"POST /v1/sessions/append-{number % SESSIONS}/push HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    link.sendall(head.encode() + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += link.recv(65536)
    head_bytes, _, rest = answer.partition(b"\r\n\r\n")
    if not head_bytes.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a push was refused: {answer[:400]!r}")
    length = next(int(line[15:]) for line in head_bytes.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(rest) < length:
        rest += link.recv(65536)


def redis_cpu_us_per_append(redis_url: str, pid: int) -> float:
    """The server's own CPU time, one subscribed gateway, 200 sessions, no run."""
    return asyncio.run(_append_many(redis_url, pid))


async def _append_many(redis_url: str, pid: int) -> float:
    settings = Settings()
    scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis)
    address = Address.parse(redis_url)
    client = Client(address, settings.redis, rng=random.Random(1), measures=Measures(), name="bench", scripts=scripts)
    connected = asyncio.get_running_loop().create_task(client.run())
    store = RedisStore(client, client, scripts, replay_page_bytes=settings.limits.replay_page_bytes)
    listener = await asyncio.open_connection(address.host, address.port)
    listener[1].write(b"SUBSCRIBE rr:ch:bench-gateway\r\n")
    await listener[0].read(100)
    drained = asyncio.get_running_loop().create_task(_drain(listener[0]))
    sessions = [SessionRef(Tenant("default"), SessionId(f"cost-{number}")) for number in range(200)]
    for session in sessions:
        await client.call(
            "HSET", f"rr:{{{session.key.decode()}}}:gws", "bench-gateway", int(time.time() * 1000) + 10**7
        )
    numbers = [0] * len(sessions)
    gate = asyncio.Semaphore(IN_FLIGHT)
    producer = ProducerRef(ProducerName("bench"), 1, registers=True)

    async def append(count: int, place: int) -> None:
        for number in range(place, count, IN_FLIGHT):
            session = number % len(sessions)
            numbers[session] += 1
            item = Item(EntryClass.OTHER, "", 0, False, b'{"kind":"data","text":"' + text(number) + b'"')
            async with gate:
                await store.append(AppendRequest(sessions[session], (item,), producer, numbers[session]))

    async def burst(count: int) -> None:
        await asyncio.gather(*(append(count, place) for place in range(IN_FLIGHT)))

    await burst(4_000)
    before = cpu_seconds(pid)
    await burst(REDIS_APPENDS)
    used = cpu_seconds(pid) - before
    for task in (connected, drained):
        task.cancel()
    listener[1].close()
    return used * 1e6 / REDIS_APPENDS


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 20):
        pass
