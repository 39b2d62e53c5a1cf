"""A connection's life as one table (design.md 5). Pure: the core asks for the next state and acts on it."""

from enum import StrEnum


class State(StrEnum):
    AUTHENTICATING = "authenticating"
    """Upgraded, no credentials yet."""
    RECOVERING = "recovering"
    """Registered in the hub; the claim or its replay is under way; live frames are held."""
    LIVE = "live"
    """Live frames are written as they come."""
    COALESCING = "coalescing"
    """Live on a poor network: its text is merged and written four times a second (core/coalescer.py)."""
    LAGGING = "lagging"
    """The client takes less than it is sent: nothing is queued, the log is read when there is room."""
    DRAINING = "draining"
    """Our close frame is on its way; nothing follows it."""
    CLOSED = "closed"
    """The link has ended."""


class Step(StrEnum):
    """What can happen to a connection."""

    ADMITTED = "admitted"
    CAUGHT_UP = "caught_up"
    FELL_BEHIND = "fell_behind"
    SLOWED = "slowed"
    RECOVERED = "recovered"
    CLOSES = "closes"
    ENDED = "ended"


_NEXT: dict[tuple[State, Step], State] = {
    (State.AUTHENTICATING, Step.ADMITTED): State.RECOVERING,
    (State.AUTHENTICATING, Step.CLOSES): State.DRAINING,
    (State.AUTHENTICATING, Step.ENDED): State.CLOSED,
    (State.RECOVERING, Step.CAUGHT_UP): State.LIVE,
    (State.RECOVERING, Step.CLOSES): State.DRAINING,
    (State.RECOVERING, Step.ENDED): State.CLOSED,
    (State.LIVE, Step.FELL_BEHIND): State.LAGGING,
    (State.LIVE, Step.CLOSES): State.DRAINING,
    (State.LIVE, Step.ENDED): State.CLOSED,
    (State.LIVE, Step.SLOWED): State.COALESCING,
    (State.COALESCING, Step.RECOVERED): State.LIVE,
    (State.COALESCING, Step.FELL_BEHIND): State.LAGGING,
    (State.COALESCING, Step.CLOSES): State.DRAINING,
    (State.COALESCING, Step.ENDED): State.CLOSED,
    (State.LAGGING, Step.CAUGHT_UP): State.LIVE,
    (State.LAGGING, Step.CLOSES): State.DRAINING,
    (State.LAGGING, Step.ENDED): State.CLOSED,
    (State.DRAINING, Step.ENDED): State.CLOSED,
}


class ImpossibleStep(Exception):
    """The table has no such pair: a fault of ours. Nothing was changed."""


def next_state(state: State, step: Step) -> State:
    """Raises ImpossibleStep for a pair that the table does not have."""
    try:
        return _NEXT[state, step]
    except KeyError:
        raise ImpossibleStep(f"a connection that is {state} cannot have {step}") from None


__all__ = ["ImpossibleStep", "State", "Step", "next_state"]
