"""When each connection of a draining gateway is closed, and when its client is asked to come back. Pure.

The deadline wins over the pace: when time is short, sockets close early, but the returns stay spread (design.md 7).
"""

from typing import NamedTuple


class DrainSlot(NamedTuple):
    """Seconds and milliseconds from the moment at which the clients are told."""

    close_after_seconds: float
    return_after_ms: int


def plan_drain(
    count: int, *, pace_seconds: float, window_seconds: float, time_left_seconds: float, return_spread_seconds: float
) -> list[DrainSlot]:
    """One slot a connection, in the order of closing. Closes end within the window and the time left."""
    if count <= 0:
        return []
    wanted_seconds = count * pace_seconds
    close_span = max(0.0, min(wanted_seconds, window_seconds, time_left_seconds))
    return_span = max(close_span, min(wanted_seconds, return_spread_seconds))
    return [
        DrainSlot(close_span * place / count, 1 + int(1000 * return_span * (place + 1) / count))
        for place in range(count)
    ]


__all__ = ["DrainSlot", "plan_drain"]
