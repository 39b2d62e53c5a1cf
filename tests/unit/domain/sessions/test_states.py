"""The table of a connection's life."""

import pytest

from gateway.domain.sessions.states import ImpossibleStep, State, Step, next_state

LIFE = [
    (State.AUTHENTICATING, Step.ADMITTED, State.RECOVERING),
    (State.RECOVERING, Step.CAUGHT_UP, State.LIVE),
    (State.LIVE, Step.FELL_BEHIND, State.LAGGING),
    (State.LAGGING, Step.CAUGHT_UP, State.LIVE),
    (State.LIVE, Step.SLOWED, State.COALESCING),
    (State.COALESCING, Step.FELL_BEHIND, State.LAGGING),
    (State.COALESCING, Step.RECOVERED, State.LIVE),
    (State.LIVE, Step.CLOSES, State.DRAINING),
    (State.DRAINING, Step.ENDED, State.CLOSED),
]


@pytest.mark.parametrize(("state", "step", "expected"), LIFE)
def test_the_usual_way(state: State, step: Step, expected: State) -> None:
    assert next_state(state, step) is expected


@pytest.mark.parametrize("state", [state for state in State if state is not State.CLOSED])
def test_every_open_state_can_end(state: State) -> None:
    assert next_state(state, Step.ENDED) is State.CLOSED


@pytest.mark.parametrize("step", list(Step))
def test_nothing_follows_the_end(step: Step) -> None:
    with pytest.raises(ImpossibleStep):
        next_state(State.CLOSED, step)


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (State.LIVE, Step.CAUGHT_UP),
        (State.LIVE, Step.ADMITTED),
        (State.RECOVERING, Step.FELL_BEHIND),
        (State.LAGGING, Step.FELL_BEHIND),
        (State.LAGGING, Step.SLOWED),
        (State.COALESCING, Step.CAUGHT_UP),
        (State.DRAINING, Step.CLOSES),
        (State.DRAINING, Step.CAUGHT_UP),
    ],
)
def test_a_missing_pair_raises(state: State, step: Step) -> None:
    with pytest.raises(ImpossibleStep):
        next_state(state, step)
