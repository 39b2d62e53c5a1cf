"""Latencies at half load, and whether the run was fit to measure them.

Half load is half of the rate at which the server core is 90 % busy (design.md 10). Gateway and Redis share that core
here, so both count: the rate comes out lower than for a gateway that has its core to itself, but nothing waits for a
core that the figure calls half free.
"""

import time
from dataclasses import dataclass
from typing import Any

from loadtest.bench.cpu import busy_seconds, cpu_seconds
from loadtest.bench.processes import LOAD_CORE, SERVER_CORE, Talker, core_number

BUSY = 0.9
PROBE_SECONDS = 3.0
SETTLE_SECONDS = 0.5
ATTEMPTS = 3
"""Another program may disturb one run."""
MAX_LATE_P99_MS = 2.5
"""How late the load generator may be: half of the smallest budget. Its own tick is 1 ms."""
MAX_LOAD_CORE = 0.8
"""Above it readers queue up on the load generator's core."""
MAX_FOREIGN = 0.05
"""What programs that are not of this run may use of either core."""


class InvalidRun(Exception):
    """The machine or the load generator, not the gateway, made the figure."""


@dataclass(frozen=True, slots=True)
class Run:
    """Who takes part."""

    servers: tuple[int, ...]
    """Process ids on the server core: gateway and Redis."""
    source: Talker
    """Publisher or producers: `run` with seconds and rate."""
    clients: Talker


@dataclass(frozen=True, slots=True)
class Times:
    p50_ms: float
    p99_ms: float
    rate: float
    """Messages a second and session."""


def measure(run: Run, sessions: int, probe_rate: float, seconds: float) -> Times:
    """`probe_rate`, a second and session, tells what a message costs. Raises InvalidRun when no attempt was fit."""
    run.source.ask(do="run", seconds=PROBE_SECONDS / 2, rate=probe_rate)
    before = _used(run.servers)
    sent = run.source.ask(do="run", seconds=PROBE_SECONDS, rate=probe_rate)["sent"]
    seconds_a_message = (_used(run.servers) - before) / sent
    rate = BUSY / 2 / seconds_a_message / sessions
    reasons = []
    for _ in range(ATTEMPTS):
        time.sleep(SETTLE_SECONDS)
        times, reason = _attempt(run, rate, seconds)
        if not reason:
            return Times(times["p50_ms"], times["p99_ms"], rate)
        reasons.append(reason)
    raise InvalidRun("; ".join(dict.fromkeys(reasons)))


def _attempt(run: Run, rate: float, seconds: float) -> tuple[dict[str, Any], str]:
    """What the clients measured, and why it does not count; empty: it does."""
    load = (run.source.pid, run.clients.pid)
    run.clients.ask(do="count")
    began = time.monotonic()
    before = [(busy_seconds(core_number(core)), _used(pids)) for core, pids in _cores(run.servers, load)]
    report = run.source.ask(do="run", seconds=seconds, rate=rate)
    lasted = time.monotonic() - began
    after = [(busy_seconds(core_number(core)), _used(pids)) for core, pids in _cores(run.servers, load)]
    time.sleep(SETTLE_SECONDS)
    times = run.clients.ask(do="count")
    if not times["times"] or times["closed"] or report.get("failed"):
        raise RuntimeError(f"the load was not delivered: {report}, {times}")
    shares = [
        ((busy_after - busy_before) / lasted, (used_after - used_before) / lasted)
        for (busy_before, used_before), (busy_after, used_after) in zip(before, after, strict=True)
    ]
    return times, reason_against(
        late_p99_ms=report["late_p99_ms"],
        load_core=max(shares[1]),
        foreign=max(busy - used for busy, used in shares),
    )


def reason_against(*, late_p99_ms: float, load_core: float, foreign: float) -> str:
    """Why a run cannot be used; empty: it can. `load_core`, `foreign`: shares of a core."""
    if foreign > MAX_FOREIGN:
        return f"other programs used {foreign:.0%} of a core"
    if load_core > MAX_LOAD_CORE:
        return f"the load generator's core was {load_core:.0%} busy"
    if late_p99_ms > MAX_LATE_P99_MS:
        return f"the load generator was {late_p99_ms:.1f} ms late (P99)"
    return ""


def _cores(servers: tuple[int, ...], load: tuple[int, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return (SERVER_CORE, servers), (LOAD_CORE, load)


def _used(pids: tuple[int, ...]) -> float:
    return sum(cpu_seconds(pid) for pid in pids)


__all__ = ["InvalidRun", "Run", "Times", "measure", "reason_against"]
