"""Many readers in one process on bare asyncio protocols: counts frames and measures publish-to-arrival times.

Run as `python -m loadtest.bench.clients`; talks JSON lines: `{"do": "count"}` on stdin answers with the totals so far.
Message text begins with `t=<monotonic nanoseconds>;`, so that both ends share one clock.
"""

import argparse
import asyncio
import base64
import json
import os
import sys
import time
from typing import Any, cast
from urllib.parse import urlsplit

import uvloop

ACK_BYTES = 32 * 1024
ACK_SECONDS = 0.25
TIMED_EVERY = 8
"""One socket in so many measures times: the readers must cost less than what they measure."""


class Totals:
    def __init__(self) -> None:
        self.frames = 0
        self.bytes = 0
        self.closed = 0
        self.latencies_ns: list[int] = []


class Reader(asyncio.Protocol):
    """One WebSocket, as little Python as it takes."""

    def __init__(self, totals: Totals, path: str, host: str, token: str | None, *, acks: bool, is_timed: bool) -> None:
        self.totals = totals
        self.buffer = b""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open = False
        self.acks = acks
        self.is_timed = is_timed or acks
        self.last_seq = 0
        self.acked_seq = 0
        self.request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: relayrouter.v1\r\n"
            + (f"Authorization: Bearer {token}\r\n" if token else "")
            + "\r\n"
        ).encode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        buffer = self.buffer + data if self.buffer else data
        if not self.is_open:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self.buffer = buffer
                return
            if not buffer.startswith(b"HTTP/1.1 101"):
                self.ready.set_exception(ConnectionError(buffer[:200].decode(errors="replace")))
                self.transport.abort()
                return
            self.is_open = True
            buffer = buffer[end + 4 :]
        position, size = 0, len(buffer)
        while size - position >= 2:
            length, start = buffer[position + 1], position + 2
            if length == 126:
                length, start = int.from_bytes(buffer[start : start + 2], "big"), start + 2
            elif length == 127:
                length, start = int.from_bytes(buffer[start : start + 8], "big"), start + 8
            if start + length > size:
                break
            self.frame(buffer[position] & 15, buffer[start : start + length])
            position = start + length
        self.buffer = buffer[position:]

    def frame(self, opcode: int, payload: bytes) -> None:
        if opcode == 9:
            self.send(10, payload)
            return
        if opcode != 1:
            return
        if b'"control"' in payload[:24]:
            if not self.ready.done():
                self.ready.set_result(None)
            return
        totals = self.totals
        totals.frames += 1
        totals.bytes += len(payload)
        if not self.is_timed:
            return
        stamp = payload.find(b"t=")  # of several tokens in one frame the oldest
        if stamp < 0:
            return
        sent_ns = int(payload[stamp + 2 : payload.index(b";", stamp)])
        totals.latencies_ns.append(time.monotonic_ns() - sent_ns)
        if self.acks:
            at = payload.index(b'"seq":') + 6
            self.last_seq = int(payload[at : payload.index(b",", at)])

    def send(self, opcode: int, payload: bytes) -> None:
        self.transport.write(bytes((0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload)

    def ack(self) -> None:
        if self.last_seq > self.acked_seq:
            self.acked_seq = self.last_seq
            self.send(1, b'{"type":"control","payload":{"kind":"ack","seq":%d}}' % self.last_seq)

    def connection_lost(self, _: Exception | None) -> None:
        self.totals.closed += 1
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("closed before the welcome"))


def summary(totals: Totals) -> dict[str, Any]:
    times = sorted(totals.latencies_ns)
    totals.latencies_ns = []

    def at(share: float) -> float | None:
        return round(times[min(len(times) - 1, int(len(times) * share))] / 1e6, 3) if times else None

    return {
        "frames": totals.frames,
        "bytes": totals.bytes,
        "closed": totals.closed,
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
    }


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="bench")
    parser.add_argument("--token")
    parser.add_argument("--ack", action="store_true")
    parser.add_argument("--parallel", type=int, default=50)
    arguments = parser.parse_args()
    where = urlsplit(arguments.url)
    loop = asyncio.get_running_loop()
    totals, gate, readers = Totals(), asyncio.Semaphore(arguments.parallel), []

    async def connect(number: int) -> None:
        path = f"/v1/sessions/{arguments.prefix}-{number}/ws?client=c{number}" + ("&ack=1" if arguments.ack else "")
        async with gate:
            _, reader = await loop.create_connection(
                lambda: Reader(
                    totals, path, where.netloc, arguments.token, acks=arguments.ack, is_timed=number % TIMED_EVERY == 0
                ),
                where.hostname,
                where.port,
            )
            await asyncio.wait_for(reader.ready, 30)
            readers.append(reader)

    async def acknowledge() -> None:
        while True:
            await asyncio.sleep(ACK_SECONDS)
            for reader in readers:
                reader.ack()

    await asyncio.gather(*(connect(number) for number in range(arguments.count)))
    print(json.dumps({"connected": len(readers)}), flush=True)
    acking = loop.create_task(acknowledge()) if arguments.ack else None
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while await commands.readline():
        print(json.dumps(summary(totals)), flush=True)
    if acking is not None:
        acking.cancel()


if __name__ == "__main__":
    uvloop.run(main())
