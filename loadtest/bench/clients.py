"""Many readers in one process on one epoll: counts frames and measures publish-to-arrival times.

Run as `python -m loadtest.bench.clients`; talks JSON lines on stdin and stdout: see Totals.answer.
Message text begins with `t=<monotonic nanoseconds>;`, so that both ends share one clock.
"""

import argparse
import base64
import gc
import json
import os
import select
import socket
import time
from array import array
from typing import Any
from urllib.parse import urlsplit

ACK_SECONDS = 0.25
TIMED_EVERY = 8
"""One socket in so many measures times: the readers must cost less than what they measure."""
OPEN_SECONDS = 30
"""No progress for so long while connecting: the gateway does not answer."""
RECEIVE_BYTES = 64 * 1024
_STDIN = 0


class Totals:
    def __init__(self) -> None:
        self.frames = 0
        self.opened = 0
        self.closed = 0
        self.latencies_ns = array("q")
        self._kept_ns = array("q")

    def answer(self, do: str) -> dict[str, Any]:
        """`keep` or `forget` the times since the last question, or of all kept ones the percentiles (`times`).

        `frames`: those since the last question.
        """
        if do == "times":
            times, self._kept_ns = sorted(self._kept_ns), array("q")
            return {"p50_ms": percentile_ms(times, 0.5), "p99_ms": percentile_ms(times, 0.99)}
        if do == "keep":
            self._kept_ns += self.latencies_ns
        answer = {"frames": self.frames, "closed": self.closed}
        self.frames, self.latencies_ns = 0, array("q")
        return answer


def percentile_ms(times_ns: list[int], share: float) -> float:
    """Of sorted times. Raises IndexError when there are none."""
    return round(times_ns[min(len(times_ns) - 1, int(len(times_ns) * share))] / 1e6, 3)


class Reader:
    """One WebSocket, as little Python as it takes."""

    __slots__ = ("_buffer", "_is_timed", "_is_upgraded", "_socket", "_totals", "acked_seq", "is_open", "last_seq")

    def __init__(self, totals: Totals, link: socket.socket, request: bytes, *, is_timed: bool) -> None:
        self._totals = totals
        self._socket = link
        self._buffer = b""
        self._is_timed = is_timed
        self._is_upgraded = False
        self.is_open = False
        """The welcome has come."""
        self.last_seq = 0
        self.acked_seq = 0
        link.sendall(request)

    def read(self) -> bool:
        """What has arrived. False: the socket has ended."""
        try:
            data = self._socket.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        if not data:
            return False
        buffer = self._buffer + data if self._buffer else data
        if not self._is_upgraded:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                self._buffer = buffer
                return True
            if not buffer.startswith(b"HTTP/1.1 101"):
                raise ConnectionError(buffer[:200].decode(errors="replace"))
            self._is_upgraded = True
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
            self._frame(buffer[position] & 15, buffer[start : start + length])
            position = start + length
        self._buffer = buffer[position:]
        return True

    def _frame(self, opcode: int, payload: bytes) -> None:
        if opcode == 9:
            self._send(10, payload)
            return
        if opcode != 1:
            return
        if b'"control"' in payload[:24]:
            self._totals.opened += not self.is_open
            self.is_open = True
            return
        totals = self._totals
        totals.frames += 1
        if not self._is_timed:
            return
        stamp = payload.find(b"t=")  # of several tokens in one frame the oldest
        if stamp < 0:
            return
        sent_ns = int(payload[stamp + 2 : payload.index(b";", stamp)])
        totals.latencies_ns.append(time.monotonic_ns() - sent_ns)
        at = payload.find(b'"seq":') + 6
        self.last_seq = int(payload[at : payload.index(b",", at)]) if at > 5 else 0  # the ordinary one has none

    def _send(self, opcode: int, payload: bytes) -> None:
        self._socket.sendall(bytes((0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload)

    def acknowledge(self) -> None:
        if self.last_seq > self.acked_seq:
            self.acked_seq = self.last_seq
            self._send(1, b'{"type":"control","payload":{"kind":"ack","seq":%d}}' % self.last_seq)


class Readers:
    """All of them."""

    def __init__(self, url: str, *, token: str | None, acks: bool) -> None:
        self._where = urlsplit(url)
        self._token = token
        self._acks = acks
        self._epoll = select.epoll()
        self._of: dict[int, Reader] = {}
        self.totals = Totals()

    def connect(self, prefix: str, count: int, parallel: int) -> None:
        """Until every one has its welcome; raises when one is refused."""
        for number in range(count):
            self._connect_one(prefix, number)
            while number + 1 - self.totals.opened >= parallel:
                self._read_once()
        while self.totals.opened < count:
            self._read_once()

    def _connect_one(self, prefix: str, number: int) -> None:
        link = socket.create_connection((self._where.hostname, self._where.port), OPEN_SECONDS)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = (
            f"GET /v1/sessions/{prefix}-{number}/ws?client=c{number}{'&ack=1' if self._acks else ''} HTTP/1.1\r\n"
            f"Host: {self._where.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Protocol: relayrouter.v1\r\n"
            + (f"Authorization: Bearer {self._token}\r\n" if self._token else "")
            + "\r\n"
        )
        is_timed = self._acks or number % TIMED_EVERY == 0
        self._of[link.fileno()] = Reader(self.totals, link, request.encode(), is_timed=is_timed)
        self._epoll.register(link, select.EPOLLIN)

    def _read_once(self) -> None:
        if not (events := self._epoll.poll(OPEN_SECONDS)):
            raise TimeoutError(f"{self.totals.opened} sockets were welcomed, then none for {OPEN_SECONDS} s")
        self._read(events)
        if self.totals.closed:
            raise ConnectionError("closed before the welcome")

    def _read(self, events: list[tuple[int, int]]) -> None:
        for number, _ in events:
            if not self._of[number].read():
                self._epoll.unregister(number)
                self.totals.closed += 1

    def serve(self, rest_seconds: float) -> None:
        """Read and answer until standard input ends.

        `rest_seconds` between two looks, for CPU figures: who sleeps in epoll on another core is woken by the server's
        own send, at up to 3 us, which no client across a network asks of it. Times are too long by as much as it rests.
        """
        self._epoll.register(_STDIN, select.EPOLLIN)
        acknowledge_at = time.monotonic() + ACK_SECONDS
        while True:
            events = self._epoll.poll(ACK_SECONDS)
            if any(number == _STDIN for number, _ in events):
                if not (line := os.read(_STDIN, 4096)):
                    return
                print(json.dumps(self.totals.answer(json.loads(line)["do"])), flush=True)
            self._read([event for event in events if event[0] != _STDIN])
            if rest_seconds:
                time.sleep(rest_seconds)
            if self._acks and time.monotonic() >= acknowledge_at:
                acknowledge_at += ACK_SECONDS
                for reader in self._of.values():
                    reader.acknowledge()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--prefix", default="bench")
    parser.add_argument("--token")
    parser.add_argument("--ack", action="store_true")
    parser.add_argument("--parallel", type=int, default=50)
    parser.add_argument("--rest-ms", type=float, default=0.0)
    arguments = parser.parse_args()
    readers = Readers(arguments.url, token=arguments.token, acks=arguments.ack)
    readers.connect(arguments.prefix, arguments.count, arguments.parallel)
    print(json.dumps({"connected": readers.totals.opened}), flush=True)
    gc.collect()
    gc.disable()  # a collection of all modules would be late for 20 ms, and nothing here makes cycles
    readers.serve(arguments.rest_ms / 1000)


if __name__ == "__main__":
    main()
