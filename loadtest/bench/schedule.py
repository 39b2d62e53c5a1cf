"""An open loop: what is due is sent, whatever the other side does, and the report says how late that was.

A load generator that falls behind measures itself: `late_p99_ms` tells, and figures of such a run are not taken.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

TICK_SECONDS = 0.001
"""Between two looks at the clock; nothing is later than this while the generator keeps up."""


def keep(rate: float, seconds: float, send: Callable[[int, int], None]) -> dict[str, Any]:
    """`send(first, end)` gets the numbers that are due, `rate` of them a second.

    `late_p99_ms`: of 100 messages 99 were sent within so much of their time; `late_worst_ms`: the latest one.
    """
    total, sent = int(rate * seconds), 0
    lateness: list[tuple[float, int]] = []
    began = time.monotonic()
    while sent < total:
        now = time.monotonic() - began
        due = min(total, int(now * rate) + 1)
        if due > sent:
            lateness.append((now - sent / rate, due - sent))
            send(sent, due)
            sent = due
        time.sleep(TICK_SECONDS)
    return {"sent": sent, "late_p99_ms": late_p99(lateness, total) * 1000, "late_worst_ms": max(lateness)[0] * 1000}


def late_p99(lateness: list[tuple[float, int]], total: int) -> float:
    """Of (lateness of the oldest, messages) of each tick: all of a tick count as late as its oldest."""
    later = 0
    for late, count in sorted(lateness, reverse=True):
        later += count
        if later > total / 100:
            return late
    return 0.0


def answer(run: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """A JSON line on standard output for each on standard input, until the input ends."""
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


__all__ = ["TICK_SECONDS", "answer", "keep", "late_p99"]
