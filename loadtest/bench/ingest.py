"""What a streamed token costs the gateway, and how long it takes to a client. Each figure starts its own processes."""

import contextlib
import time
from collections.abc import Iterator

from loadtest.bench import half_load
from loadtest.bench.cpu import cpu_seconds
from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, Talker, gateway, python_module, valkey
from loadtest.bench.watch import InvalidRun
from loadtest.bench.windows import Run

RUNS = 100
RATES = {"tokens": 200.0, "raw": 120.0}
"""Tokens a second and run: the gateway's core is some 60 % busy. A slower load costs more a token: each loop turn and
each read of the kernel then serves fewer of them."""
WARM_SECONDS = 2.0
IDLE_WITHIN_SECONDS = 15.0
LOOK_SECONDS = 0.3
IDLE_SHARE = 0.05
"""Of a core: heartbeats and renewals of 100 open runs are below it."""
PROBE_RATES = {"tokens": 80.0, "raw": 60.0}
"""Where the search for half load begins, with Redis on the same core."""


@contextlib.contextmanager
def _producers(url: str, segment: str) -> Iterator[Talker]:
    options = ("--url", url, "--count", str(RUNS), "--query", f"segment={segment}")
    with python_module("loadtest.bench.streams", *options, core=LOAD_CORE) as producers:
        producers.read()
        yield producers


def cpu_us_per_token(segment: str, seconds: float) -> float:
    """100 runs; Redis on the other core. Raises InvalidRun."""
    with (
        valkey(core=LOAD_CORE) as (redis_url, _),
        gateway(redis_url) as ours,
        _producers(ours.url, segment) as producers,
    ):
        producers.ask(do="run", seconds=WARM_SECONDS, rate=RATES[segment])
        before = _cpu_seconds_when_idle(ours.pid)
        sent = int(producers.ask(do="run", seconds=seconds, rate=RATES[segment])["sent"])
        return (_cpu_seconds_when_idle(ours.pid) - before) * 1e6 / sent


def _cpu_seconds_when_idle(pid: int) -> float:
    """What was sent may still be in its sockets: a figure that leaves that out would be too low."""
    deadline, seen = time.monotonic() + IDLE_WITHIN_SECONDS, cpu_seconds(pid)
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        now = cpu_seconds(pid)
        if now - seen < IDLE_SHARE * LOOK_SECONDS:
            return now
        seen = now
    raise InvalidRun(f"the gateway was still busy {IDLE_WITHIN_SECONDS:.0f} s after the last token")


def p99_ms_to_client(segment: str, seconds: float) -> float:
    """From a chunk's sending to the client that has it, the oldest token of each frame. Raises InvalidRun."""
    with (
        valkey(core=SERVER_CORE) as (redis_url, redis_pid),
        gateway(redis_url) as ours,
        python_module("loadtest.bench.clients", "--url", ours.url, "--count", str(RUNS), core=LOAD_CORE) as clients,
    ):
        clients.read()
        with _producers(ours.url, segment) as producers:
            run = Run((ours.pid, redis_pid), producers, clients)
            return half_load.measure(run, RUNS, PROBE_RATES[segment], seconds).p99_ms


__all__ = ["cpu_us_per_token", "p99_ms_to_client"]
