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


FIGURES = (
    Figure("cpu_us_per_delivered", "us", 10, "gateway CPU per 160-byte message delivered, 1,000 sockets x 20 a second"),
    Figure("cpu_us_per_delivered_acking", "us", None, "the same when every client acknowledges four times a second"),
    Figure("ordinary_cpu_us_per_delivered", "us", None, "an ordinary gateway in the same run"),
    Figure("delivered_ratio", "", 1 / 3, "ours divided by the ordinary one's"),
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
    Figure("p50_ms", "ms", None, "publish to client, median, during the delivery run"),
    Figure("p99_ms", "ms", 5, "publish to client, 99th percentile, during the delivery run"),
)

ORDINARY_US = (30 * 0.6, 42 * 1.4)
"""The documented cost of the ordinary gateway, +-40 %: outside of it the machine or the run is not comparable."""


def show(values: dict[str, float]) -> bool:
    """Print the table; True when every budget is met."""
    all_met = True
    print(f"\n{'figure':32} {'value':>10} {'budget':>10}      meaning")
    for figure in FIGURES:
        value = values.get(figure.name)
        if value is None:
            continue
        met = figure.budget is None or value <= figure.budget
        all_met = all_met and met
        budget = "" if figure.budget is None else f"{figure.budget:.2f}"
        mark = "" if figure.budget is None else ("ok" if met else "OVER")
        print(f"{figure.name:32} {value:10.2f} {budget:>10} {mark:4} {figure.meaning} [{figure.unit or 'ratio'}]")
    return all_met


def write(values: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(values, indent=2) + "\n")
