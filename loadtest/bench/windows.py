"""Load for some fit seconds: each second is judged by itself, and one that was spoilt is done again.

What makes a second unfit is never its outcome: only a late or saturated load generator, and what other programs used.
"""

import time
from collections import Counter
from dataclasses import dataclass, field

from loadtest.bench.processes import Talker
from loadtest.bench.watch import InvalidRun, Watch, used

WINDOW_SECONDS = 1.0
SETTLE_SECONDS = 0.2
"""Until what was sent has arrived."""
PATIENCE = 5
"""So many seconds are tried for one that is fit."""


@dataclass(frozen=True, slots=True)
class Run:
    """Who takes part."""

    servers: tuple[int, ...]
    """Process ids on the server core: what is measured first, then Redis."""
    source: Talker
    """Publisher or producers: `run` with seconds and rate."""
    clients: Talker


@dataclass(slots=True)
class Sum:
    """Over all fit seconds."""

    sent: int = 0
    cpu_seconds: list[float] = field(default_factory=list)
    """Of each server."""
    all_sent: int = 0
    all_frames: int = 0
    """In unfit seconds, too."""
    p50_ms: float = 0.0
    p99_ms: float = 0.0


def measure(run: Run, rate: float, seconds: float, *, may_be_late: bool = False) -> Sum:
    """`rate` a second and session. Raises InvalidRun when too few seconds were fit.

    `may_be_late`: a message that is sent late costs the server the same.
    """
    total, wanted, tried = Sum(cpu_seconds=[0.0] * len(run.servers)), round(seconds / WINDOW_SECONDS), 0
    fit, reasons = 0, Counter[str]()
    time.sleep(SETTLE_SECONDS)
    run.clients.ask(do="forget")
    while fit < wanted and tried < wanted * PATIENCE:
        tried += 1
        before = [used((pid,)) for pid in run.servers]
        watch = Watch(run.servers, tuple({run.source.pid, run.clients.pid} - set(run.servers)))
        report = run.source.ask(do="run", seconds=WINDOW_SECONDS, rate=rate)
        reason = watch.reason_against(0.0 if may_be_late else report["late_p99_ms"])
        time.sleep(SETTLE_SECONDS)
        arrived = run.clients.ask(do="forget" if reason else "keep")
        if report.get("failed") or arrived["closed"]:
            raise RuntimeError(f"the load was not delivered: {report}, {arrived}")
        total.all_sent += report["sent"]
        total.all_frames += arrived["frames"]
        if reason:
            reasons[reason] += 1
            continue
        fit += 1
        total.sent += report["sent"]
        for place, pid in enumerate(run.servers):
            total.cpu_seconds[place] += used((pid,)) - before[place]
    if fit < wanted:
        often = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        raise InvalidRun(f"of {tried} seconds {fit} were fit, {wanted} are needed: {often}")
    times = run.clients.ask(do="times")
    total.p50_ms, total.p99_ms = times["p50_ms"], times["p99_ms"]
    return total


__all__ = ["Run", "Sum", "measure"]
