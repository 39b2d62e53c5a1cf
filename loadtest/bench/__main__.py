"""`python -m loadtest.bench`: every figure of `make bench` in one run."""

import argparse
import sys
from pathlib import Path

from loadtest.bench import figures
from loadtest.bench.processes import LOAD_CORE, pin
from loadtest.bench.table import FIGURES, ORDINARY_US, show, write


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU, memory and heal times of one gateway, beside an ordinary one.")
    parser.add_argument("--only", action="append", metavar="FIGURE", help="one figure's name; may be repeated")
    parser.add_argument("--sockets", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=8)
    arguments = parser.parse_args()
    pin(LOAD_CORE)
    wanted = set(arguments.only or (figure.name for figure in FIGURES))
    values: dict[str, float] = {}
    if any(name.endswith("delivered") or name in ("delivered_ratio", "p50_ms", "p99_ms") for name in wanted):
        values |= figures.delivery(arguments.sockets, arguments.seconds)
    if "cpu_us_per_delivered_acking" in wanted:
        values |= figures.delivery_acking(arguments.sockets, arguments.seconds)
    if "cpu_us_per_append" in wanted:
        values |= figures.appends(arguments.seconds)
    if wanted & {"kib_per_idle_connection", "cpu_us_per_connect"}:
        values |= figures.connections(arguments.idle)
    if "redis_cpu_us_per_append" in wanted:
        values |= figures.redis_appends()
    if "redis_cpu_us_per_append_run" in wanted:
        values |= figures.redis_appends_run()
    if wanted & figures.INGEST:
        values |= figures.ingest(arguments.seconds, wanted)
    if "heal_seconds" in wanted:
        values |= figures.heal()
    is_met = show(values)
    write(values, Path("build/bench.json"))
    ordinary = values.get("ordinary_cpu_us_per_delivered")
    if ordinary is not None and not ORDINARY_US[0] <= ordinary <= ORDINARY_US[1]:
        print(f"INVALID RUN: the ordinary gateway took {ordinary:.1f} us, documented are 30 to 42 (+-40 %)")
        return 2
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
