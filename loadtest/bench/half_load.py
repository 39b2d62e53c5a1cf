"""Latencies at half load: half of the rate at which the server core is 90 % busy (design.md 10).

Gateway and Redis share that core here, so both count: the rate comes out lower than for a gateway that has its core to
itself, but nothing waits for a core that the figure calls half free.
"""

import time
from dataclasses import dataclass

from loadtest.bench.processes import Talker
from loadtest.bench.watch import InvalidRun, Watch, used

BUSY = 0.9
WARM_SECONDS = 1.5
PROBE_SECONDS = 3.0
SETTLE_SECONDS = 0.5
ATTEMPTS = 3
"""Another program may disturb one run. The first that was fit counts, not the best."""


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
    """`probe_rate`, a second and session, is where the search begins. Raises InvalidRun when no attempt was fit."""
    run.source.ask(do="run", seconds=WARM_SECONDS, rate=probe_rate)
    # A message costs less the more there are: the second probe is at some 90 % busy, and never above it.
    busy_rate = BUSY / _seconds_a_message(run, probe_rate) / sessions
    rate = BUSY / _seconds_a_message(run, busy_rate) / sessions / 2
    reasons = []
    for _ in range(ATTEMPTS):
        time.sleep(SETTLE_SECONDS)
        times, reason = _attempt(run, rate, seconds)
        if not reason:
            return times
        reasons.append(reason)
    raise InvalidRun("; ".join(reasons))


def _seconds_a_message(run: Run, rate: float) -> float:
    """Of the server core, at this rate."""
    before = used(run.servers)
    sent = run.source.ask(do="run", seconds=PROBE_SECONDS, rate=rate)["sent"]
    time.sleep(SETTLE_SECONDS)
    return (used(run.servers) - before) / int(sent)


def _attempt(run: Run, rate: float, seconds: float) -> tuple[Times, str]:
    """What the clients measured, and why it does not count; empty: it does."""
    run.clients.ask(do="count")
    watch = Watch(run.servers, (run.source.pid, run.clients.pid))
    report = run.source.ask(do="run", seconds=seconds, rate=rate)
    reason = watch.reason_against(report["late_p99_ms"])
    time.sleep(SETTLE_SECONDS)
    times = run.clients.ask(do="count")
    if not times["times"] or times["closed"] or report.get("failed"):
        raise RuntimeError(f"the load was not delivered: {report}, {times}")
    return Times(times["p50_ms"], times["p99_ms"], rate), reason


__all__ = ["Run", "Times", "measure"]
