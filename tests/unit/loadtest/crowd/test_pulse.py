"""Links of a crowd that die without a word are found, living ones are left alone."""

import pytest

from loadtest.crowd.pulse import CONNECT_SECONDS, LATE_SECONDS, PROBE_SECONDS, Due, Pulse

QUIET_SECONDS = 3.0


def _look(pulse: Pulse, now: float, *, late_seconds: float = 0.0, is_welcome: bool = True) -> Due:
    return pulse.look(now, late_seconds, QUIET_SECONDS, is_welcome=is_welcome)


@pytest.mark.parametrize(("now", "due"), [(2.9, Due.NOTHING), (3.0, Due.ASK), (3.1, Due.ASK)])
def test_a_link_is_asked_after_silence(now: float, due: Due) -> None:
    """Not before the silence is as long as agreed."""
    assert _look(Pulse(0.0), now) is due


@pytest.mark.parametrize("heard_at", [3.1, 7.9])
def test_any_byte_after_the_question_is_life(heard_at: float) -> None:
    """The silence is counted anew from it."""
    pulse = Pulse(0.0)
    _look(pulse, 3.0)

    pulse.heard_at = heard_at

    assert _look(pulse, 8.0) is (Due.ASK if heard_at == 3.1 else Due.NOTHING)


@pytest.mark.parametrize(
    ("now", "due"),
    [(2.9 + PROBE_SECONDS, Due.NOTHING), (3.0 + PROBE_SECONDS, Due.DEAD), (4.0 + PROBE_SECONDS, Due.DEAD)],
)
def test_no_byte_after_the_question_is_death(now: float, due: Due) -> None:
    """It is given the whole time of a probe."""
    pulse = Pulse(0.0)
    _look(pulse, 3.0)

    assert _look(pulse, now) is due


def test_a_late_look_asks_once_more() -> None:
    """After a pause of our own the answer may lie unread: death needs a second silence."""
    pulse = Pulse(0.0)
    _look(pulse, 3.0)

    looks = [_look(pulse, 20.0, late_seconds=LATE_SECONDS), _look(pulse, 20.0 + PROBE_SECONDS)]

    assert looks == [Due.ASK, Due.DEAD]


@pytest.mark.parametrize(("now", "due"), [(CONNECT_SECONDS - 0.1, Due.NOTHING), (CONNECT_SECONDS, Due.DEAD)])
def test_a_connect_without_a_welcome_is_given_up(now: float, due: Due) -> None:
    """Nobody is asked before the welcome: the connect has a deadline of its own."""
    assert _look(Pulse(0.0), now, is_welcome=False) is due
