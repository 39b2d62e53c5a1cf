"""When each connection of a draining gateway is closed, and when its client is asked to come back. Pure.

The deadline wins over the pace: when time is short, sockets close early, but the returns stay spread (design.md 7).
"""

from typing import Final, NamedTuple

RETURN_PACE_SECONDS: Final = 0.01
"""Clients are never asked back faster than a hundred a second, unless the spread is too short for that."""


class DrainSlot(NamedTuple):
    """Seconds and milliseconds from the moment at which the clients are told."""

    close_after_seconds: float
    return_after_ms: int


def plan_drain(
    count: int, *, pace_seconds: float, window_seconds: float, time_left_seconds: float, return_spread_seconds: float
) -> list[DrainSlot]:
    """One slot a connection, in the order of closing.

    Closes are `pace_seconds` apart, or less: all come within the window and before the time left is over. A client
    returns when it is closed; where closes come faster than the pace, later, spread over `return_spread_seconds`.
    """
    if count <= 0:
        return []
    close_span = max(0.0, min(count * pace_seconds, window_seconds, time_left_seconds))
    wanted_seconds = count * max(pace_seconds, RETURN_PACE_SECONDS)
    return_span = max(close_span, min(wanted_seconds, return_spread_seconds))
    return [
        DrainSlot(close_span * place / count, 1 + int(1000 * return_span * (place + 1) / count))
        for place in range(count)
    ]


__all__ = ["RETURN_PACE_SECONDS", "DrainSlot", "plan_drain"]
