"""Where a benchmark's processes run."""

import os
import subprocess
import sys

from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, core_number, pin

_SHOW = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]


def test_who_is_on_the_load_core_can_start_processes_on_the_server_core() -> None:
    """A child has its parent's cores until it is given others: those of the machine count, not those of the parent."""
    cores = os.sched_getaffinity(0)
    try:
        pin(LOAD_CORE)
        shown = subprocess.run(_SHOW, stdout=subprocess.PIPE, preexec_fn=lambda: pin(SERVER_CORE), check=True)
    finally:
        os.sched_setaffinity(0, cores)

    assert shown.stdout.split() == [b"%d" % core_number(SERVER_CORE)]
