"""Open-loop publisher: unique 160-byte messages to many sessions, evenly spread, from a process of its own.

`relayrouter`: appends through the gateway's own store, as an ingesting gateway on another host would; `ordinary`:
PUBLISH. Talks JSON lines: `{"do": "run", "seconds": S, "rate": R}` publishes R messages a second to each session.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Coroutine

import uvloop

from gateway.adapters.logs import set_up_logs
from gateway.adapters.redis_store import RedisStore, StoreScripts
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.ports import Appended, AppendRequest, ProducerRef
from gateway.settings import Settings

TEXT_BYTES = 160
Publish = Callable[[int, bytes], Coroutine[None, None, bool]]


def text(number: int) -> bytes:
    """Unique, 160 bytes, beginning with the time at which it was made."""
    return (b"t=%d;%d " % (time.monotonic_ns(), number)).ljust(TEXT_BYTES, b"x")


def relayrouter(store: RedisStore, count: int, prefix: str) -> Publish:
    sessions = [SessionRef(Tenant("default"), SessionId(f"{prefix}-{number}")) for number in range(count)]
    numbers = [0] * count
    producer = ProducerRef(ProducerName("bench"), 1, registers=True)

    async def publish(session: int, body: bytes) -> bool:
        numbers[session] += 1
        item = Item(EntryClass.OTHER, "", 0, False, b'{"kind":"data","text":"' + body + b'"')
        outcome = await store.append(AppendRequest(sessions[session], (item,), producer, numbers[session]))
        return isinstance(outcome, Appended)

    return publish


def ordinary(client: Client, count: int, prefix: str) -> Publish:
    channels = [f"session:{prefix}-{number}".encode() for number in range(count)]

    async def publish(session: int, body: bytes) -> bool:
        frame = b'{"type":"text","payload":{"kind":"data","text":"' + body + b'"}}'
        return bool(await client.call("PUBLISH", channels[session], frame))

    return publish


async def run(publish: Publish, count: int, seconds: float, rate: float) -> dict[str, float]:
    """What was published and acknowledged; `late_seconds`: how far the schedule fell behind at the worst."""
    pending: set[asyncio.Task[bool]] = set()
    failed = sent = 0
    worst = 0.0
    began = time.monotonic()
    total = int(seconds * rate * count)
    loop = asyncio.get_running_loop()

    def ended(task: asyncio.Task[bool]) -> None:
        nonlocal failed
        pending.discard(task)
        failed += task.exception() is not None or not task.result()

    while sent < total:
        now = time.monotonic() - began
        due = min(total, int(now * rate * count))
        worst = max(worst, now - sent / (rate * count))
        while sent < due:
            task = loop.create_task(publish(sent % count, text(sent)))
            pending.add(task)
            task.add_done_callback(ended)
            sent += 1
        await asyncio.sleep(0.001)
    if pending:
        await asyncio.wait(pending, timeout=10)
    return {"sent": sent, "failed": failed + len(pending), "late_seconds": round(worst, 3)}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("relayrouter", "ordinary"), required=True)
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="bench")
    arguments = parser.parse_args()
    settings = Settings()
    set_up_logs(settings.log.model_copy(update={"level": "warning"}))
    scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis)
    client = Client(
        Address.parse(arguments.redis_url), settings.redis, rng=random.Random(1), measures=Measures(), name="bench",
        scripts=scripts,
    )  # fmt: skip
    connected = asyncio.get_running_loop().create_task(client.run())
    await client.call("PING")
    if arguments.kind == "relayrouter":
        store = RedisStore(client, client, scripts, replay_page_bytes=settings.limits.replay_page_bytes)
        publish = relayrouter(store, arguments.count, arguments.prefix)
    else:
        publish = ordinary(client, arguments.count, arguments.prefix)
    print(json.dumps({"ready": True}), flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        wanted = json.loads(line)
        print(json.dumps(await run(publish, arguments.count, wanted["seconds"], wanted["rate"])), flush=True)
    connected.cancel()


if __name__ == "__main__":
    uvloop.run(main())
