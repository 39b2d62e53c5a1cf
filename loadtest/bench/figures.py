"""How each figure of the benchmark is taken. Every function starts and ends its own processes."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

from loadtest.bench import appends as append_figures
from loadtest.bench import half_load, healing, redis_cost, windows
from loadtest.bench import ingest as ingest_figures
from loadtest.bench.cpu import cpu_seconds, resident_kib
from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, Talker, gateway, python_module, valkey
from loadtest.bench.tokens import key_file, token
from loadtest.bench.windows import Run

RATE = 20.0
"""Messages a second and socket (design.md 10)."""
WARM_SECONDS = 2.0
LATE_SECONDS = 3.0
"""What has not arrived then is lost."""
RESTING = ("--rest-ms", "1")
"""Readers that are not woken by the server's send; the same for all three servers."""
SUFFIXES = {"tokens": "", "raw": "_raw"}
"""Of the figures' names, by segmenter mode."""


@contextlib.contextmanager
def _clients(url: str, count: int, *arguments: str) -> Iterator[Talker]:
    options = ("--url", url, "--count", str(count), *arguments)
    with python_module("loadtest.bench.clients", *options, core=LOAD_CORE) as clients:
        connected = clients.read()["connected"]
        if connected != count:
            raise RuntimeError(f"{connected} of {count} sockets connected")
        yield clients


@contextlib.contextmanager
def _publisher(kind: str, redis_url: str, count: int) -> Iterator[Talker]:
    options = ("--kind", kind, "--redis-url", redis_url, "--count", str(count))
    with python_module("loadtest.bench.publisher", *options, core=LOAD_CORE) as publisher:
        publisher.read()
        yield publisher


def _deliver(servers: tuple[int, ...], clients: Talker, publisher: Talker, seconds: float) -> float:
    """CPU us of the first of `servers` a delivered message while 20 a second reach every socket.

    Raises when one did not arrive, and InvalidRun when other programs made it dearer.
    """
    publisher.ask(do="run", seconds=WARM_SECONDS, rate=RATE)
    total = windows.measure(Run(servers, publisher, clients), RATE, seconds, may_be_late=True)
    if total.all_frames < total.all_sent:
        time.sleep(LATE_SECONDS)
        total.all_frames += clients.ask(do="forget")["frames"]
    if total.all_frames != total.all_sent:
        raise RuntimeError(f"of {total.all_sent} messages {total.all_frames} arrived")
    return total.cpu_seconds[0] * 1e6 / total.sent


def delivery(sockets: int, seconds: float) -> dict[str, float]:
    """Ours, the ordinary gateway and the floor below both, one after the other on the same cores. Raises InvalidRun."""
    with (
        valkey(core=SERVER_CORE) as (redis_url, redis_pid),
        gateway(redis_url) as ours,
        _clients(ours.url, sockets, *RESTING) as clients,
        _publisher("relayrouter", redis_url, sockets) as publisher,
    ):
        us = _deliver((ours.pid, redis_pid), clients, publisher, seconds)
    with (
        valkey(core=SERVER_CORE) as (redis_url, redis_pid),
        _ordinary(redis_url) as theirs,
        _clients(theirs.url, sockets, *RESTING) as clients,
        _publisher("ordinary", redis_url, sockets) as publisher,
    ):
        them = _deliver((theirs.pid, redis_pid), clients, publisher, seconds)
    with (
        python_module("loadtest.bench.bare", "--count", str(sockets), core=SERVER_CORE) as bare,
        _clients(bare.read()["url"], sockets, *RESTING) as clients,
    ):
        floor = _deliver((bare.pid,), clients, bare, seconds)
    return {
        "cpu_us_per_delivered": us,
        "ordinary_cpu_us_per_delivered": them,
        "floor_cpu_us_per_delivered": floor,
        "delivered_ratio": us / them,
    }


def delivery_times(sockets: int, seconds: float) -> dict[str, float]:
    """Publish to client at half load. Raises InvalidRun."""
    with (
        valkey(core=SERVER_CORE) as (redis_url, redis_pid),
        gateway(redis_url) as ours,
        _clients(ours.url, sockets) as clients,
        _publisher("relayrouter", redis_url, sockets) as publisher,
    ):
        run = Run((ours.pid, redis_pid), publisher, clients)
        times = half_load.measure(run, sockets, RATE, seconds)
    return {"p50_ms": times.p50_ms, "p99_ms": times.p99_ms, "half_load_per_second": times.rate * sockets}


def delivery_acking(sockets: int, seconds: float) -> dict[str, float]:
    """The first figure with clients that acknowledge. Raises InvalidRun."""
    with (
        valkey(core=SERVER_CORE) as (redis_url, redis_pid),
        gateway(redis_url) as ours,
        _clients(ours.url, sockets, "--ack", *RESTING) as clients,
        _publisher("relayrouter", redis_url, sockets) as publisher,
    ):
        return {"cpu_us_per_delivered_acking": _deliver((ours.pid, redis_pid), clients, publisher, seconds)}


@contextlib.contextmanager
def _ordinary(redis_url: str) -> Iterator[Talker]:
    with python_module("loadtest.bench.ordinary", "--redis-url", redis_url, core=SERVER_CORE) as server:
        server.url = server.read()["url"]
        yield server


def connections(count: int) -> dict[str, float]:
    """CPU of a connect with a token, and what an idle connection holds."""
    with key_file() as (path, secret), valkey() as (redis_url, _):
        env = {"RR_AUTH__DEV_SECRET_FILE": path}
        with gateway(redis_url, auth="jwt", env=env) as ours:
            signed = token(secret)
            with _clients(ours.url, 200, "--token", signed, "--prefix", "warm"):
                pass
            time.sleep(1.0)
            memory, cpu = resident_kib(ours.pid), cpu_seconds(ours.pid)
            with _clients(ours.url, count, "--token", signed):
                cpu = cpu_seconds(ours.pid) - cpu
                time.sleep(1.0)
                memory = resident_kib(ours.pid) - memory
    return {"cpu_us_per_connect": cpu * 1e6 / count, "kib_per_idle_connection": memory / count}


def appends(seconds: float) -> dict[str, float]:
    with valkey() as (redis_url, _), gateway(redis_url) as ours:
        return {"cpu_us_per_append": append_figures.cpu_us_per_append(ours.url, ours.pid, seconds)}


def redis_appends() -> dict[str, float]:
    with valkey(core=SERVER_CORE) as (redis_url, _):
        return {"redis_cpu_us_per_append": redis_cost.cpu_us_per_append(redis_url)}


def redis_appends_run() -> dict[str, float]:
    with valkey(core=SERVER_CORE) as (redis_url, _):
        return {"redis_cpu_us_per_append_run": redis_cost.cpu_us_per_append_run(redis_url)}


def ingest(seconds: float, segment: str) -> dict[str, float]:
    """What a token of 100 streams costs the gateway: `tokens` segments, or `raw`."""
    suffix = SUFFIXES[segment]
    return {f"cpu_us_per_ingested_token{suffix}": ingest_figures.cpu_us_per_token(segment, seconds)}


def ingest_times(seconds: float, segment: str) -> dict[str, float]:
    """Chunk to client at half load. Raises InvalidRun."""
    return {f"p99_ms{SUFFIXES[segment]}_chunk_to_client": ingest_figures.p99_ms_to_client(segment, seconds)}


def heal() -> dict[str, float]:
    return {"heal_seconds": asyncio.run(healing.heal_seconds())}
