"""The benchmark's figures: name, budget and meaning in one table; prints them and writes `build/bench.json`."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    unit: str
    budget: float | None
    """Upper bound (design.md 10); None: shown for comparison."""
    meaning: str
    at_least: float | None = None
    """Lower bound, where more is better."""

    def is_met(self, value: float) -> bool:
        if self.at_least is not None and value < self.at_least:
            return False
        return self.budget is None or value <= self.budget

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f">={self.at_least:.0f}"
        return "" if self.budget is None else f"{self.budget:.2f}"


FIGURES = (
    Figure("cpu_us_per_delivered", "us", 10, "gateway CPU per 160-byte message delivered, 1,000 sockets x 20 a second"),
    Figure("cpu_us_per_delivered_acking", "us", None, "the same when every client acknowledges four times a second"),
    Figure("ordinary_cpu_us_per_delivered", "us", None, "an ordinary gateway in the same run"),
    Figure("floor_cpu_us_per_delivered", "us", None, "a program that only sends these frames: the machine's own price"),
    Figure("delivered_ratio", "", 1 / 3, "ours divided by the ordinary one's; both contain the floor"),
    Figure("cpu_us_per_append", "us", 20, "gateway CPU per published message, batches of 100 over HTTP"),
    Figure("kib_per_idle_connection", "KiB", 20, "memory per idle authenticated connection, 5,000 of them"),
    Figure("cpu_us_per_connect", "us", 450, "gateway CPU per connect: HS256 token, claim, welcome"),
    Figure("redis_cpu_us_per_append", "us", 13, "Redis CPU per append, one item a call"),
    Figure("redis_cpu_us_per_append_run", "us", 16, "the same for a message of a run, with text and progress"),
    Figure(
        "cpu_us_per_ingested_token", "us", 30, "gateway CPU per token of 100 streams, a chunk a TCP segment, tokens 15"
    ),
    Figure("cpu_us_per_ingested_token_raw", "us", 45, "the same when each token is a message of its own"),
    Figure("p99_ms_chunk_to_client", "ms", 300, "chunk sent to client, oldest token of each frame, at half load"),
    Figure("p99_ms_raw_chunk_to_client", "ms", 5, "the same, each token a message of its own"),
    Figure("heal_seconds", "s", 1.5, "a lost bus message until its text is there; busy and quiet session, the larger"),
    Figure(
        "reconnect_most_of_a_slot",
        "",
        0.15,
        "2,000 SDK clients lose their gateway: share of the fullest tenth of the first second",
    ),
    Figure("reconnect_all_live_seconds", "s", 35, "from the moment that a gateway is back until all are live again"),
    Figure("reconnect_most_admitted_per_second", "1/s", None, "connects that it admitted then, at most"),
    Figure(
        "storm_lost", "", 0, "6,000 readers of running streams, 3 gateways, one killed, then all rolled: lost or wrong"
    ),
    Figure(
        "storm_admitted_over_budget", "", 0, "windows in which a gateway let in more of them than its bucket allows"
    ),
    Figure("storm_all_live_seconds", "s", 60, "from the kill, or a SIGTERM, until every client was live"),
    Figure("storm_p99_ratio", "", 2, "delivery P99 of those that did not move, in the worst phase, by that before"),
    Figure("capacity_idle", "", None, "idle connections on 4 gateways of this machine", at_least=20_000),
    Figure("capacity_streaming", "", None, "beside them readers of streams, a message a second each", at_least=2_000),
    Figure("capacity_p99_ms", "ms", None, "append to client, 99th percentile, of those"),
    Figure("p50_ms", "ms", None, "publish to client, median, 1,000 sockets at half load"),
    Figure("p99_ms", "ms", 5, "the same, 99th percentile"),
)

ORDINARY_FLOORS = (1.8, 8.0)
"""The ordinary gateway's cost in floors, 4 to 6 where it was documented (30 to 42 us; a send 7). Machines differ in how
fast they run Python and how fast their kernel sends, so neither time alone tells anything. Below, it leaves out work
that it is said to do (a frame is parsed, changed and written as JSON); above, it or the run is broken."""


def reason_against_reference(values: dict[str, float]) -> str:
    """Why the ordinary gateway of this run is no yardstick; empty: it is, or was not measured."""
    ordinary, floor = values.get("ordinary_cpu_us_per_delivered"), values.get("floor_cpu_us_per_delivered")
    if ordinary is None or floor is None or ORDINARY_FLOORS[0] <= ordinary / floor <= ORDINARY_FLOORS[1]:
        return ""
    low, high = ORDINARY_FLOORS
    return f"the ordinary gateway cost {ordinary / floor:.1f} floors; comparable are {low:.1f} to {high:.1f}"


def show(values: dict[str, float], invalid: dict[str, str]) -> bool:
    """Print the table; True when every budget is met. `invalid`: figures that could not be taken, and why."""
    all_met = True
    print(f"\n{'figure':34} {'value':>10} {'budget':>10}      meaning")
    for figure in FIGURES:
        if figure.name in invalid:
            print(f"{figure.name:34} {'-':>10} {figure.bound:>10}      INVALID RUN: {invalid[figure.name]}")
            continue
        value = values.get(figure.name)
        if value is None:
            continue
        is_met = figure.is_met(value)
        all_met = all_met and is_met
        mark = "" if not figure.bound else ("ok" if is_met else "OVER" if figure.at_least is None else "LESS")
        print(f"{figure.name:34} {value:10.2f} {figure.bound:>10} {mark:4} {figure.meaning} [{figure.unit or '-'}]")
    return all_met


def write(values: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values, indent=2) + "\n")
