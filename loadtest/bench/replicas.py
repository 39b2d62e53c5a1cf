"""The price of `append.min_replicas`: `python -m loadtest.bench.replicas`.

A primary with no, one and two replicas on this machine, one gateway's side of Redis, sessions whose messages follow
each other. At a fixed rate: latency and the primary's processor time an append; then both as fast as it goes.
"""

import argparse
import asyncio
import logging
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from pydantic import SecretStr

from gateway.app.redis_side import RedisSide
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.domain.wire.payload import make_item
from gateway.ports import Appended, AppendRequest, ProducerRef
from gateway.settings import AppendSettings, RedisSettings, Settings
from loadtest.bench.cpu import cpu_seconds
from loadtest.processes import Server

SESSIONS = 64
GATEWAY = "gateway-0-0123456789abcdef"
ITEM = make_item({"kind": "data", "text": "x" * 160})
WARM_UP = 200
CASES = ((0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
"""Replicas, and how many of them an append waits for."""


class NotAppended(Exception):
    pass


class Figures(NamedTuple):
    replicas: int
    waits_for: int
    p50_ms: float
    p99_ms: float
    redis_us: float
    most_per_second: float
    redis_us_at_most: float

    def better_of(self, other: "Figures") -> "Figures":
        """Another process on the machine can only make a round dearer."""
        return Figures(
            self.replicas,
            self.waits_for,
            min(self.p50_ms, other.p50_ms),
            min(self.p99_ms, other.p99_ms),
            min(self.redis_us, other.redis_us),
            max(self.most_per_second, other.most_per_second),
            min(self.redis_us_at_most, other.redis_us_at_most),
        )

    def __str__(self) -> str:
        latency = f"{self.p50_ms:.2f} ms | {self.p99_ms:.2f} ms | {self.redis_us:.0f} us"
        return (
            f"| {self.replicas} | {self.waits_for} | {latency} | {self.most_per_second:,.0f} "
            f"| {self.redis_us_at_most:.0f} us |"
        )


@contextmanager
def servers(folder: Path, replicas: int) -> Iterator[Server]:
    """The primary."""
    started: list[Server] = []
    try:
        started += [Server(folder / f"server-{number}") for number in range(1 + replicas)]
        for server in started:
            server.start()
        for replica in started[1:]:
            replica.follow(started[0])
        yield started[0]
    finally:
        for server in started:
            server.end()


class Writer:
    """Sessions with one subscribed gateway each; a message at a time in each of them."""

    def __init__(self, side: RedisSide, primary: Server) -> None:
        self._side, self._primary = side, primary
        self._refs = [SessionRef(Tenant("bench"), SessionId(f"s{number}")) for number in range(SESSIONS)]
        self._numbers = [count(1) for _ in self._refs]
        self._locks = [asyncio.Lock() for _ in self._refs]
        self._producer = ProducerRef(ProducerName("~0123456789abcdef"), 1, registers=True)

    async def append(self, place: int) -> None:
        place %= SESSIONS
        async with self._locks[place]:
            request = AppendRequest(self._refs[place], (ITEM,), self._producer, next(self._numbers[place]))
            outcome = await self._side.store.append(request)
        if not isinstance(outcome, Appended):
            raise NotAppended(outcome)

    async def warm_up(self) -> None:
        for place in range(SESSIONS):
            await self.append(place)
        with self._primary.client() as client:
            for ref in self._refs:
                client.set(f"rr:{{{ref.key.decode()}}}:gws", f"9999999999999 {GATEWAY}")
        for place in range(WARM_UP):
            await self.append(place)

    async def at_rate(self, per_second: float, seconds: float) -> tuple[list[float], float]:
        """Latencies (seconds), each from the moment at which it was due, and the primary's processor time an append."""
        latencies: list[float] = []

        async def one(place: int, due: float) -> None:
            await self.append(place)
            latencies.append(time.perf_counter() - due)

        before, began, tasks = cpu_seconds(self._primary.pid), time.perf_counter(), []
        for number in range(int(per_second * seconds)):
            due = began + number / per_second
            if (pause := due - time.perf_counter()) > 0:
                await asyncio.sleep(pause)
            tasks.append(asyncio.create_task(one(number, due)))
        await asyncio.gather(*tasks)
        return latencies, (cpu_seconds(self._primary.pid) - before) / len(latencies)

    async def as_fast_as_it_goes(self, seconds: float) -> tuple[float, float]:
        """Appends a second, and the primary's processor time of one."""
        until, done = time.perf_counter() + seconds, 0

        async def session(place: int) -> None:
            nonlocal done
            while time.perf_counter() < until:
                await self.append(place)
                done += 1

        before, began = cpu_seconds(self._primary.pid), time.perf_counter()
        await asyncio.gather(*(session(place) for place in range(SESSIONS)))
        elapsed = time.perf_counter() - began
        return done / elapsed, (cpu_seconds(self._primary.pid) - before) / done


async def measure(replicas: int, waits_for: int, per_second: float, seconds: float) -> Figures:
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder), replicas) as primary:
        settings = Settings(
            redis=RedisSettings(url=SecretStr(primary.url)),
            append=AppendSettings(min_replicas=waits_for, replica_wait_seconds=1),
        )
        up = asyncio.Event()
        side = RedisSide(settings, Measures(), random.Random(1), lambda is_up, _: up.set() if is_up else None)
        lives = [asyncio.create_task(life, name=name) for name, life in side.lives()]
        client: Any = primary.client()
        listener = client.pubsub()
        listener.subscribe(f"rr:ch:{GATEWAY}")
        drain = asyncio.create_task(asyncio.to_thread(_drain, listener))
        try:
            await up.wait()
            writer = Writer(side, primary)
            await writer.warm_up()
            latencies, redis_seconds = await writer.at_rate(per_second, seconds)
            most, redis_seconds_at_most = await writer.as_fast_as_it_goes(seconds)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
            listener.close()
            await asyncio.gather(drain, return_exceptions=True)
        latencies.sort()
        return Figures(
            replicas,
            waits_for,
            latencies[len(latencies) // 2] * 1e3,
            latencies[len(latencies) * 99 // 100] * 1e3,
            redis_seconds * 1e6,
            most,
            redis_seconds_at_most * 1e6,
        )


def _drain(listener: Any) -> None:
    """One gateway that hears everything."""
    while True:
        try:
            listener.get_message(timeout=1)
        except (OSError, ValueError, AttributeError):
            return


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4, help="of each part (default 4)")
    parser.add_argument("--rounds", type=int, default=3, help="each figure is the best of so many (default 3)")
    parser.add_argument("--per-second", type=float, default=1000, help="appends at the fixed rate (default 1000)")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    best: dict[tuple[int, int], Figures] = {}
    for _ in range(options.rounds):
        for case in CASES:
            found = asyncio.run(measure(*case, options.per_second, options.seconds))
            best[case] = found.better_of(best.get(case, found))
    print("| replicas | waits for | P50 | P99 | Redis | most a second | Redis then |\n|---|---|---|---|---|---|---|")
    for figures in best.values():
        print(figures)


if __name__ == "__main__":
    main()
