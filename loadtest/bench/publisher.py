"""Open-loop publisher: unique 160-byte messages to many sessions, evenly spread, from a process of its own.

`relayrouter`: appends through the gateway's own store, as an ingesting gateway on another host would; `ordinary`:
PUBLISH. Talks JSON lines: `{"do": "run", "seconds": S, "rate": R}` publishes R messages a second to each session.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

from gateway.adapters.logs import set_up_logs
from gateway.adapters.redis_store import RedisStore, StoreScripts
from gateway.adapters.redis_store.keys import session_keys
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.ports import AppendRequest, ProducerRef
from gateway.settings import Settings

TEXT_BYTES = 160
ANSWER_SECONDS = 10
Publish = Callable[[int, bytes], "asyncio.Future[Any]"]
"""Queues one message for a session; the future is the server's answer."""
PRODUCER = ProducerRef(ProducerName("bench"), 1, registers=True)


def text(number: int) -> bytes:
    """Unique, 160 bytes, beginning with the time at which it was made."""
    return (b"t=%d;%d " % (time.monotonic_ns(), number)).ljust(TEXT_BYTES, b"x")


async def relayrouter(client: Client, scripts: StoreScripts, count: int, prefix: str) -> Publish:
    """Each session begins with one append through the store; then the same script call without a task a message."""
    store = RedisStore(client, client, scripts, replay_page_bytes=1 << 17)
    sessions = [SessionRef(Tenant("default"), SessionId(f"{prefix}-{number}")) for number in range(count)]
    for session in sessions:
        item = Item(EntryClass.OTHER, "", 0, False, b'{"kind":"data"')
        await store.append(AppendRequest(session, (item,), PRODUCER, 1))
    heads = [b',"session_id":"%s","payload":{"kind":"data","text":"' % session.session.encode() for session in sessions]
    keys = [session_keys(session).of_append for session in sessions]
    numbers = [1] * count
    field = f"p:{PRODUCER.name}"

    def publish(session: int, body: bytes) -> "asyncio.Future[Any]":
        numbers[session] += 1
        frame = heads[session] + body + b'"'
        arguments = (client.incarnation, field, PRODUCER.epoch, numbers[session], "r", "o", "", 0, frame)
        return client.send(scripts.append.pack(keys[session], arguments))

    return publish


def ordinary(client: Client, count: int, prefix: str) -> Publish:
    channels = [f"session:{prefix}-{number}".encode() for number in range(count)]

    def publish(session: int, body: bytes) -> "asyncio.Future[Any]":
        return client.call(
            "PUBLISH", channels[session], b'{"type":"text","payload":{"kind":"data","text":"' + body + b'"}}'
        )

    return publish


async def run(publish: Publish, count: int, seconds: float, rate: float) -> dict[str, float]:
    """What was published and acknowledged; `late_seconds`: how far the schedule fell behind at the worst."""
    failed = sent = answered = 0
    all_heard = asyncio.Event()
    worst = 0.0
    began = time.monotonic()
    total = int(seconds * rate * count)

    def heard(answer: "asyncio.Future[Any]") -> None:
        nonlocal failed, answered
        answered += 1
        if answered == total:
            all_heard.set()
        reply = None if answer.exception() else answer.result()
        failed += not (reply == 1 or (isinstance(reply, bytes) and reply.startswith(b"a")))

    while sent < total:
        now = time.monotonic() - began
        due = min(total, int(now * rate * count))
        worst = max(worst, now - sent / (rate * count))
        while sent < due:
            publish(sent % count, text(sent)).add_done_callback(heard)
            sent += 1
        await asyncio.sleep(0.001)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(all_heard.wait(), ANSWER_SECONDS)
    return {"sent": sent, "failed": failed + sent - answered, "late_seconds": round(worst, 3)}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("relayrouter", "ordinary"), required=True)
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="bench")
    arguments = parser.parse_args()
    settings = Settings()
    set_up_logs(settings.log.model_copy(update={"level": "warning"}))
    scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis, settings.runs)
    client = Client(
        Address.parse(arguments.redis_url), settings.redis, rng=random.Random(1), measures=Measures(), name="bench",
        scripts=scripts,
    )  # fmt: skip
    connected = asyncio.get_running_loop().create_task(client.run())
    await client.call("PING")
    if arguments.kind == "relayrouter":
        publish = await relayrouter(client, scripts, arguments.count, arguments.prefix)
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
