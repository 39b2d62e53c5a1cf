"""The reconnect storm as figures: run by its own command on all cores, because its clients need more than one."""

import json
import os
import subprocess
import sys
from typing import Any

from loadtest.bench.processes import all_cores
from loadtest.bench.watch import InvalidRun

SECONDS = 300
NAMES = frozenset({"storm_most_of_a_slot", "storm_all_live_seconds", "storm_most_admitted_per_second"})


def storm(clients: int) -> dict[str, float]:
    """Raises InvalidRun when it was not kept for another reason than a figure's budget."""
    command = [sys.executable, "-m", "loadtest.storm", "--json", "--clients", str(clients)]
    done = subprocess.run(
        command,
        capture_output=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, all_cores()),
        text=True,
        timeout=SECONDS,
    )
    lines = done.stdout.splitlines()
    if not lines:
        raise InvalidRun(f"the storm ended with {done.returncode}: {done.stderr[-300:]}")
    told: dict[str, Any] = json.loads(lines[-1])
    if told["storm_all_live_seconds"] is None:
        raise InvalidRun(f"the storm: {told['problems']}")
    return {name: float(told[name]) for name in NAMES}


__all__ = ["NAMES", "storm"]
