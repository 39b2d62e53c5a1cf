"""Liveness: silence is asked about, and only an unanswered question is death."""

import pytest
from relayrouter.probe import Due, Liveness


def liveness(*, keep_alive: float | None = None) -> Liveness:
    return Liveness(20.0, 3.0, 5.0, keep_alive, 0.0)


@pytest.mark.parametrize(("now", "due"), [(19.9, Due.NOTHING), (20.0, Due.ASK), (20.1, Due.ASK)])
def test_silence_for_an_interval_is_asked_about(now: float, due: Due) -> None:
    """N - 1, n, n + 1."""
    assert liveness().look(now) is due


def test_silence_in_a_run_is_suspicious_sooner() -> None:
    """Tokens come in tens a second."""
    it = liveness()
    it.is_streaming = True

    assert it.look(2.9) is Due.NOTHING
    assert it.look(3.0) is Due.ASK


@pytest.mark.parametrize(("now", "due"), [(24.9, Due.NOTHING), (25.0, Due.DEAD), (25.9, Due.DEAD)])
def test_an_unanswered_question_is_death(now: float, due: Due) -> None:
    """Not before its time."""
    it = liveness()
    it.asked(20.0)

    assert it.look(now) is due


def test_a_deadline_that_was_looked_at_too_late_is_asked_again() -> None:
    """We slept, not the server: hidden tabs, stopped processes (B01)."""
    it = liveness()
    it.asked(20.0)

    assert it.look(26.1) is Due.ASK
    it.asked(26.1)
    assert it.look(31.0) is Due.NOTHING
    assert it.look(31.2) is Due.DEAD


def test_any_byte_after_the_question_is_life() -> None:
    """The pong may wait behind a long text."""
    it = liveness()
    it.asked(20.0)
    it.heard(24.0)

    assert it.look(28.9) is Due.NOTHING
    assert it.look(29.0) is Due.DEAD


def test_a_stream_is_measured_although_it_is_never_silent() -> None:
    """The round trip is what degradation goes by."""
    it = liveness()
    for second in range(20):
        it.heard(float(second))

    assert it.look(19.9) is Due.NOTHING
    assert it.look(20.0) is Due.ASK


def test_keep_alive_traffic_comes_at_least_so_often() -> None:
    """Counted from what we sent, not from what we heard (A19)."""
    it = liveness(keep_alive=15.0)
    it.heard(14.0)
    assert it.look(15.0) is Due.ASK
    it = liveness(keep_alive=15.0)
    it.sent(10.0)
    assert it.look(19.9) is Due.NOTHING


def test_a_probe_asks_at_once() -> None:
    """The page is visible again."""
    it = liveness()
    it.probe()

    assert it.look(0.1) is Due.ASK
    it.asked(0.1)
    it.answered()
    assert it.look(0.2) is Due.NOTHING


def test_who_does_not_read_judges_nobody() -> None:
    """The application is slow: the answer lies in our own buffer."""
    it = liveness()
    it.asked(20.0)
    it.is_stalled = True

    assert it.look(25.5) is Due.NOTHING
