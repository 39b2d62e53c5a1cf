"""What one script costs the server: its own CPU time over many pipelined calls: `python -m loadtest.bench.redis_cost`.

Commands are packed before the clock starts, so that the server never waits for us; the best of three rounds counts,
because another process on the machine can only make a round dearer.
"""

import argparse
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import hiredis

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.keys import session_keys, text_keys
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.settings import RunSettings, Settings
from loadtest.bench.processes import valkey

BATCH = 500
ROUNDS = 3
GATEWAY = "gateway-0-0123456789abcdef"
SESSION = SessionRef(Tenant("default"), SessionId("chat-42"))
KEYS = session_keys(SESSION)
RUN = "run-1"
BODY = ',"session_id":"chat-42","payload":{"kind":"delta","run":"run-1","text":"' + "x" * 160 + '"'

Words = Sequence[Any]


class Link:
    """A blocking connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self._reader = hiredis.Reader()

    def call(self, *words: Any) -> object:
        self.socket.sendall(hiredis.pack_command(tuple(words)))
        return self.replies(1)[0]

    def replies(self, count: int) -> list[object]:
        found: list[object] = []
        while len(found) < count:
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self.socket.recv(1 << 20))
            elif isinstance(reply, Exception):
                raise reply
            else:
                found.append(reply)
        return found

    def server_cpu_seconds(self) -> float:
        info = self.call("INFO", "cpu")
        assert isinstance(info, bytes)
        return sum(float(value) for value in re.findall(rb"used_cpu_(?:user|sys):([0-9.]+)", info))


@contextmanager
def subscriber(port: int) -> Iterator[None]:
    """One gateway that listens."""
    link = Link(port)
    link.call("SUBSCRIBE", f"rr:ch:{GATEWAY}")
    thread = threading.Thread(target=_drain, args=(link.socket,), daemon=True)
    thread.start()
    yield
    link.socket.shutdown(socket.SHUT_RDWR)
    thread.join()


def _drain(link: socket.socket) -> None:
    while link.recv(1 << 20):
        pass


def cost_us(link: Link, port: int, calls: int, make: Callable[[int], Words], warm_up: int) -> float:
    """The best round's microseconds a call; `make` gives the words of call number 1, 2, ..."""
    number, best = 0, float("inf")
    with subscriber(port):
        for measured in [warm_up, *[calls] * ROUNDS]:
            batches = []
            for _ in range(0, measured, BATCH):
                batches.append(b"".join(hiredis.pack_command(tuple(make(number + i + 1))) for i in range(BATCH)))
                number += BATCH
            before = link.server_cpu_seconds()
            for batch in batches:
                link.socket.sendall(batch)
                link.replies(BATCH)
            if measured is not warm_up:
                best = min(best, (link.server_cpu_seconds() - before) / (len(batches) * BATCH) * 1e6)
    return best


def appends(link: Link, scripts: StoreScripts, messages: int, *, has_run: bool) -> Callable[[int], Words]:
    """A session with one subscribed gateway and a producer whose numbers begin at 1.

    `has_run`: messages of an open run, its text kept and the progress of its input stored.
    """
    link.call("FLUSHALL")
    info = link.call("INFO", "replication")
    assert isinstance(info, bytes)
    incarnation = re.findall(rb"master_replid:(\w+)", info)[0]
    link.call("SCRIPT", "LOAD", scripts.enter.source)
    link.call("SCRIPT", "LOAD", scripts.append.source)
    link.call(
        "EVALSHA", scripts.enter.sha, len(KEYS.of_log), *KEYS.of_log, incarnation, "0123456789abcdefgh", "", "1", ""
    )
    link.call("SET", KEYS.gws, f"9999999999999 {GATEWAY}")
    if not has_run:
        head = (
            "EVALSHA",
            scripts.append.sha,
            len(KEYS.of_append),
            *KEYS.of_append,
            incarnation,
            "p:~0123456789abcdef",
            1,
        )
        return lambda call: (*head, (call - 1) * messages + 1, "r", *("o", "", 0, BODY) * messages)
    link.call("HSET", KEYS.meta, f"p:~run/{RUN}", "1 0 @0 ", "runs", RUN, f"r:{RUN}", "o 0 0 0 0 0 0 0 0 1 1")
    keys = (*KEYS.of_append, *text_keys(SESSION, RUN))
    head = ("EVALSHA", scripts.append.sha, len(keys), *keys, incarnation, f"p:~run/{RUN}", 1)
    state = f"{GATEWAY}\n" + "s" * 120
    message = ("d+161", RUN, 160, BODY)
    return lambda call: (*head, (call - 1) * messages + 1, "s", RUN, call * 160, state, *message * messages)


def cpu_us_per_append(redis_url: str, calls: int = 50_000) -> float:
    """One message without a run a call, the log at its limit, one gateway subscribed: the figure of `make bench`."""
    return _cost_of_messages(redis_url, calls, 1, has_run=False)


def cpu_us_per_append_run(redis_url: str, calls: int = 50_000) -> float:
    """The same of an open run's writer: text kept, progress stored."""
    return _cost_of_messages(redis_url, calls, 1, has_run=True)


def _cost_of_messages(redis_url: str, calls: int, messages: int, *, has_run: bool) -> float:
    """Of one message in calls of so many. Texts are kept however long they get: all calls do the same."""
    settings = Settings(runs=RunSettings(text_bytes=1 << 30, session_text_bytes=1 << 30))
    scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis, settings.runs)
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    link = Link(port)
    make = appends(link, scripts, messages, has_run=has_run)
    return cost_us(link, port, max(BATCH, calls // messages), make, 1_500) / messages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000, help="a round (default 50000)")
    calls = parser.parse_args().calls
    with valkey() as (url, _):
        for title, messages, has_run in (
            ("append, one message, log at its limit", 1, False),
            ("append, one message of a run, log at its limit", 1, True),
            ("append, each of 4 messages", 4, False),
            ("append, each of 4 messages of a run", 4, True),
            ("append, each of 100 messages", 100, False),
        ):
            print(f"{title:<50} {_cost_of_messages(url, calls, messages, has_run=has_run):6.2f} us")


if __name__ == "__main__":
    main()
