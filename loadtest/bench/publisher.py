"""Open-loop publisher: unique 160-byte messages to many sessions, evenly spread, from a process of its own.

`relayrouter`: the gateway's own append script, as an ingesting gateway on another host would call it; `ordinary`:
PUBLISH. Commands are templates of bytes and answers are only counted: it must cost less than what it measures. Talks
JSON lines: `{"do": "run", "seconds": S, "rate": R}` publishes R messages a second to each session.
"""

import argparse
import asyncio
import gc
import json
import random
import socket
import time
from typing import Any

import hiredis

from gateway.adapters.logs import set_up_logs
from gateway.adapters.redis_store import RedisStore, StoreScripts
from gateway.adapters.redis_store.keys import session_keys
from gateway.adapters.resp import Address, Client
from gateway.adapters.resp.commands import pack
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.ports import AppendRequest, ProducerRef
from gateway.settings import Settings
from loadtest.bench import schedule

TEXT_BYTES = 160
ANSWER_SECONDS = 10
PRODUCER = ProducerRef(ProducerName("bench"), 1, registers=True)
BODY_MARK = b"B" * TEXT_BYTES
NUMBER_MARK = b"NUMBER"


def text(number: int) -> bytes:
    """Unique, 160 bytes, beginning with the time at which it was made."""
    return (b"t=%d;%d " % (time.monotonic_ns(), number)).ljust(TEXT_BYTES, b"x")


class Appends:
    """One append a message; each session's numbers go on from 1, the append that `prepare` made."""

    def __init__(self, packed: list[bytes]) -> None:
        """`packed`: for each session one command that has the marks in the places of number and body."""
        self._parts = []
        for command in packed:
            before, _, rest = command.partition(b"$%d\r\n%b\r\n" % (len(NUMBER_MARK), NUMBER_MARK))
            between, _, after = rest.partition(BODY_MARK)
            self._parts.append((before, between, after))
        self._numbers = [1] * len(packed)

    def command(self, session: int, body: bytes) -> bytes:
        self._numbers[session] += 1
        number = b"%d" % self._numbers[session]
        before, between, after = self._parts[session]
        return b"%b$%d\r\n%b\r\n%b%b%b" % (before, len(number), number, between, body, after)

    @staticmethod
    def is_good(reply: object) -> bool:
        return isinstance(reply, bytes) and reply.startswith(b"a")


class Publishes:
    """The ordinary gateway's: PUBLISH to the session's channel."""

    def __init__(self, count: int, prefix: str) -> None:
        body = b'{"type":"text","payload":{"kind":"data","text":"' + BODY_MARK + b'"}}'
        self._parts = []
        for number in range(count):
            before, _, after = pack(("PUBLISH", f"session:{prefix}-{number}", body)).partition(BODY_MARK)
            self._parts.append((before, after))

    def command(self, session: int, body: bytes) -> bytes:
        before, after = self._parts[session]
        return before + body + after

    @staticmethod
    def is_good(reply: object) -> bool:
        return reply == 1


class Pipeline:
    """A socket that takes commands in one send a tick, and counts answers."""

    def __init__(self, host: str, port: int, kind: Appends | Publishes, count: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = hiredis.Reader()
        self._kind = kind
        self._count = count
        self._unanswered = self._failed = 0

    def send(self, first: int, end: int) -> None:
        command, count = self._kind.command, self._count
        self._socket.sendall(b"".join([command(number % count, text(number)) for number in range(first, end)]))
        self._unanswered += end - first
        self._take(socket.MSG_DONTWAIT)

    def _take(self, flags: int = 0) -> None:
        try:
            data = self._socket.recv(1 << 20, flags)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionError("the server has closed the publisher's connection")
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            self._unanswered -= 1
            self._failed += not self._kind.is_good(reply)

    def run(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """What was published and acknowledged, see schedule.keep."""
        self._failed = 0
        report = schedule.keep(wanted["rate"] * self._count, wanted["seconds"], self.send)
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            while self._unanswered:
                self._take()
        except TimeoutError:
            self._failed += self._unanswered
        self._socket.settimeout(None)
        return report | {"failed": self._failed}


async def prepare(redis_url: str, count: int, prefix: str) -> Appends:
    """Each session begins with one append through the store; then the same script call, built from a template."""
    settings = Settings()
    set_up_logs(settings.log.model_copy(update={"level": "warning"}))
    scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis, settings.runs)
    client = Client(
        Address.parse(redis_url), settings.redis, rng=random.Random(1), measures=Measures(), name="bench",
        scripts=scripts,
    )  # fmt: skip
    connected = asyncio.create_task(client.run())
    await client.call("PING")
    store = RedisStore(client, client, scripts, replay_page_bytes=1 << 17)
    packed = []
    for number in range(count):
        session = SessionRef(Tenant("default"), SessionId(f"{prefix}-{number}"))
        item = Item(EntryClass.OTHER, "", 0, False, b'{"kind":"data"')
        await store.append(AppendRequest(session, (item,), PRODUCER, 1))
        frame = b',"session_id":"%b","payload":{"kind":"data","text":"%b"' % (session.session.encode(), BODY_MARK)
        arguments = (client.incarnation, f"p:{PRODUCER.name}", PRODUCER.epoch, NUMBER_MARK, "r", "o", "", 0, frame)
        packed.append(scripts.append.pack(session_keys(session).of_append, arguments))
    connected.cancel()
    return Appends(packed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("relayrouter", "ordinary"), required=True)
    parser.add_argument("--redis-url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="bench")
    arguments = parser.parse_args()
    kind: Appends | Publishes
    if arguments.kind == "relayrouter":
        kind = asyncio.run(prepare(arguments.redis_url, arguments.count, arguments.prefix))
    else:
        kind = Publishes(arguments.count, arguments.prefix)
    address = Address.parse(arguments.redis_url)
    pipeline = Pipeline(address.host, address.port, kind, arguments.count)
    gc.collect()
    gc.disable()  # a collection of all modules would be late for 20 ms, and nothing here makes cycles
    print(json.dumps({"ready": True}), flush=True)
    schedule.answer(pipeline.run)


if __name__ == "__main__":
    main()
