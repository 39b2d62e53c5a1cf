"""What a streamed token costs the gateway, and how long it takes to a client. Each figure starts its own processes."""

import contextlib
import time
from collections.abc import Iterator

from loadtest.bench.cpu import cpu_seconds
from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, Talker, gateway, python_module, valkey

RUNS = 100
RATES = {"tokens": 200.0, "raw": 120.0}
"""Tokens a second and run: the gateway's core is some 60 % busy. A slower load costs more a token: each loop turn and
each read of the kernel then serves fewer of them."""
WARM_SECONDS = 2.0
BUSY = 0.9
"""Half load: half of the rate at which the gateway's core would be so busy (design.md 10)."""


@contextlib.contextmanager
def _producers(url: str, segment: str) -> Iterator[Talker]:
    options = ("--url", url, "--count", str(RUNS), "--query", f"segment={segment}")
    with python_module("loadtest.bench.streams", *options, core=LOAD_CORE) as producers:
        producers.read()
        yield producers


def cpu_us_per_token(segment: str, seconds: float) -> float:
    """100 runs; Redis on the other core."""
    with (
        valkey(core=LOAD_CORE) as (redis_url, _),
        gateway(redis_url) as ours,
        _producers(ours.url, segment) as producers,
    ):
        producers.ask(do="run", seconds=WARM_SECONDS, rate=RATES[segment])
        before = cpu_seconds(ours.pid)
        sent = int(producers.ask(do="run", seconds=seconds, rate=RATES[segment])["sent"])
        time.sleep(0.3)
        return (cpu_seconds(ours.pid) - before) * 1e6 / sent


def p99_ms_to_client(segment: str, us_per_token: float, seconds: float) -> float:
    """From a chunk's sending to the first client that has it, the oldest token of each frame, at half load."""
    rate = min(RATES[segment], BUSY / 2 * 1e6 / us_per_token / RUNS)
    with (
        valkey(core=SERVER_CORE) as (redis_url, _),
        gateway(redis_url) as ours,
        python_module("loadtest.bench.clients", "--url", ours.url, "--count", str(RUNS), core=LOAD_CORE) as clients,
    ):
        clients.read()
        with _producers(ours.url, segment) as producers:
            producers.ask(do="run", seconds=WARM_SECONDS, rate=rate)
            clients.ask(do="count")
            producers.ask(do="run", seconds=seconds, rate=rate)
            time.sleep(0.5)
            times = clients.ask(do="count")
    if times["p99_ms"] is None or times["closed"]:
        raise RuntimeError(f"the load was not delivered: {times}")
    return float(times["p99_ms"])


__all__ = ["cpu_us_per_token", "p99_ms_to_client"]
