"""Latencies at half load: half of the rate at which the server core is 90 % busy (design.md 10).

Gateway and Redis share that core here, so both count: the rate comes out lower than for a gateway that has its core to
itself, but nothing waits for a core that the figure calls half free.
"""

from dataclasses import dataclass

from loadtest.bench import windows
from loadtest.bench.windows import Run

BUSY = 0.9
PROBE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Times:
    p50_ms: float
    p99_ms: float
    rate: float
    """Messages a second and session."""


def measure(run: Run, sessions: int, probe_rate: float, seconds: float) -> Times:
    """`probe_rate`, a second and session, is where the search for half load begins. Raises InvalidRun."""
    # A message costs less the more there are: the second probe is at some 90 % busy, and never above it.
    busy_rate = _busy_rate(run, sessions, probe_rate)
    rate = _busy_rate(run, sessions, busy_rate) / 2
    times = windows.measure(run, rate, seconds)
    return Times(times.p50_ms, times.p99_ms, rate)


def _busy_rate(run: Run, sessions: int, rate: float) -> float:
    """At which the servers' core would be 90 % busy, if a message cost what it does at this rate."""
    probe = windows.measure(run, rate, PROBE_SECONDS, may_be_late=True)
    return BUSY * probe.sent / sum(probe.cpu_seconds) / sessions


__all__ = ["Times", "measure"]
