"""Whether a run was fit to be measured: its own load generator kept up, and nobody else used its cores.

Two cores of a virtual machine are often one core's two threads: what another program uses of either makes both slower.
"""

import time

from loadtest.bench.cpu import busy_seconds, cpu_seconds
from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, core_number

MAX_LATE_P99_MS = 2.5
"""How late the load generator may be: half of the smallest budget. Its own tick is 1 ms."""
MAX_LOAD_CORE = 0.8
"""Above it readers queue up on the load generator's core."""
MAX_FOREIGN = 0.05
"""What programs that are not of this run may use of either core."""


class InvalidRun(Exception):
    """The machine or the load generator, not the gateway, made the figure."""


class Watch:
    """From its making on. On one core for both sides everything counts as load."""

    def __init__(self, servers: tuple[int, ...], load: tuple[int, ...]) -> None:
        """Process ids on the server core and on the load core."""
        sides: dict[int, tuple[int, ...]] = {core_number(SERVER_CORE): servers}
        sides[core_number(LOAD_CORE)] = sides.get(core_number(LOAD_CORE), ()) + load
        self._sides = sides
        self._began = time.monotonic()
        self._before = self._now()

    def _now(self) -> dict[int, tuple[float, float]]:
        return {core: (busy_seconds(core), used(pids)) for core, pids in self._sides.items()}

    def reason_against(self, late_p99_ms: float) -> str:
        """Why what happened so far cannot be used; empty: it can."""
        lasted, now = time.monotonic() - self._began, self._now()
        busy = {core: (now[core][0] - self._before[core][0]) / lasted for core in now}
        ours = {core: (now[core][1] - self._before[core][1]) / lasted for core in now}
        load = core_number(LOAD_CORE)
        return reason_against(
            late_p99_ms=late_p99_ms,
            load_core=max(busy[load], ours[load]),
            foreign=max(busy[core] - ours[core] for core in now),
        )


def used(pids: tuple[int, ...]) -> float:
    """CPU seconds of these processes so far."""
    return sum(cpu_seconds(pid) for pid in pids)


def reason_against(*, late_p99_ms: float, load_core: float, foreign: float) -> str:
    """Why a run cannot be used; empty: it can. `load_core`, `foreign`: shares of a core."""
    if foreign > MAX_FOREIGN:
        return f"other programs used more than {MAX_FOREIGN:.0%} of a core"
    if load_core > MAX_LOAD_CORE:
        return f"the load generator's core was more than {MAX_LOAD_CORE:.0%} busy"
    if late_p99_ms > MAX_LATE_P99_MS:
        return f"the load generator was more than {MAX_LATE_P99_MS} ms late (P99)"
    return ""


__all__ = ["MAX_FOREIGN", "MAX_LATE_P99_MS", "MAX_LOAD_CORE", "InvalidRun", "Watch", "reason_against", "used"]
