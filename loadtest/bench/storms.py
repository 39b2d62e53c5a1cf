"""Storms and capacity as figures: each run by its own command on all cores, because its clients need more than one."""

import json
import os
import subprocess
import sys
from typing import Any

from loadtest.bench.processes import all_cores
from loadtest.bench.watch import InvalidRun

SECONDS = 400
RECONNECT = ("reconnect_most_of_a_slot", "reconnect_all_live_seconds", "reconnect_most_admitted_per_second")
STORM = ("storm_lost", "storm_admitted_over_budget", "storm_all_live_seconds", "storm_p99_ratio")
CAPACITY = ("capacity_idle", "capacity_streaming", "capacity_p99_ms")


def reconnect(clients: int) -> dict[str, float]:
    """SDK clients that lose their only gateway. Raises InvalidRun when some did not come back."""
    told = _run("loadtest.storm", "--clients", str(clients))
    if told["reconnect_all_live_seconds"] is None:
        raise InvalidRun(f"the storm: {told['problems']}")
    return {name: float(told[name]) for name in RECONNECT}


def storm(clients: int) -> dict[str, float]:
    """A kill and three rolls under readers of running streams. Raises InvalidRun."""
    told = _run("loadtest.bench.cluster_storm", "--sessions", str(clients // 20), "--clients", "20")
    return {name: float(told["figures"][name]) for name in STORM}


def capacity(idle: int, streaming: int) -> dict[str, float]:
    """Raises InvalidRun, also when anything was lost."""
    told = _run("loadtest.bench.capacity", "--idle", str(idle), "--sessions", str(streaming // 20), "--clients", "20")
    if told["wrong"]:
        raise InvalidRun(f"{told['wrong']} clients or messages were lost")
    return {
        "capacity_idle": float(told["idle"]),
        "capacity_streaming": float(told["streaming"]),
        "capacity_p99_ms": float(told["p99_ms"]),
    }


def _run(module: str, *options: str) -> dict[str, Any]:
    """The last line of its output. Raises InvalidRun."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--json", *options],
        capture_output=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, all_cores()),
        text=True,
        timeout=SECONDS,
    )
    lines = done.stdout.splitlines()
    if not lines:
        raise InvalidRun(f"{module} ended with {done.returncode}: {done.stderr[-300:]}")
    told: dict[str, Any] = json.loads(lines[-1])
    return told


__all__ = ["CAPACITY", "RECONNECT", "STORM", "capacity", "reconnect", "storm"]
