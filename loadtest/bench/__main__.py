"""`python -m loadtest.bench`: every figure of `make bench` in one run."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from loadtest.bench import figures, storms
from loadtest.bench.processes import LOAD_CORE, pin
from loadtest.bench.table import FIGURES, reason_against_reference, show, write
from loadtest.bench.watch import InvalidRun


def main() -> int:
    """0: all figures within their budgets; 1: one is over; 2: one could not be measured on this machine now."""
    parser = argparse.ArgumentParser(description="CPU, memory and heal times of one gateway, beside an ordinary one.")
    parser.add_argument("--only", action="append", metavar="FIGURE", help="one figure's name; may be repeated")
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--reconnect", type=int, default=2000, help="SDK clients that lose their only gateway")
    parser.add_argument("--storm", type=int, default=6000, help="readers of running streams while a cluster is rolled")
    parser.add_argument("--capacity-idle", type=int, default=20_000)
    parser.add_argument("--capacity-streaming", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    pin(LOAD_CORE)
    seconds, sockets = arguments.seconds, arguments.sockets
    takes: list[tuple[set[str], Callable[[], dict[str, float]]]] = [
        (
            {
                "cpu_us_per_delivered",
                "ordinary_cpu_us_per_delivered",
                "floor_cpu_us_per_delivered",
                "delivered_ratio",
            },
            lambda: figures.delivery(sockets, seconds),
        ),
        ({"p50_ms", "p99_ms"}, lambda: figures.delivery_times(sockets, seconds)),
        ({"cpu_us_per_delivered_acking"}, lambda: figures.delivery_acking(sockets, seconds)),
        ({"cpu_us_per_append"}, lambda: figures.appends(seconds)),
        ({"kib_per_idle_connection", "cpu_us_per_connect"}, lambda: figures.connections(arguments.idle)),
        ({"redis_cpu_us_per_append"}, figures.redis_appends),
        ({"redis_cpu_us_per_append_run"}, figures.redis_appends_run),
        ({"cpu_us_per_ingested_token"}, lambda: figures.ingest(seconds, "tokens")),
        ({"cpu_us_per_ingested_token_raw"}, lambda: figures.ingest(seconds, "raw")),
        ({"p99_ms_chunk_to_client"}, lambda: figures.ingest_times(seconds, "tokens")),
        ({"p99_ms_raw_chunk_to_client"}, lambda: figures.ingest_times(seconds, "raw")),
        ({"heal_seconds"}, figures.heal),
        (set(storms.RECONNECT), lambda: storms.reconnect(arguments.reconnect)),
        (set(storms.STORM), lambda: storms.storm(arguments.storm)),
        (set(storms.CAPACITY), lambda: storms.capacity(arguments.capacity_idle, arguments.capacity_streaming)),
    ]
    wanted = set(arguments.only or (figure.name for figure in FIGURES))
    values: dict[str, float] = {}
    invalid: dict[str, str] = {}
    for names, take in takes:
        if names & wanted:
            try:
                values |= take()
            except InvalidRun as exc:
                invalid |= dict.fromkeys(names, str(exc))
    if reason := reason_against_reference(values):
        invalid["delivered_ratio"] = reason
    is_met = show(values, invalid)
    write({name: value for name, value in values.items() if name not in invalid}, Path("build/bench.json"))
    if invalid:
        return 2
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
