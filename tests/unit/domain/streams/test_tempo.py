"""How a run's tokens come, from times that are given."""

import pytest

from gateway.domain.streams.tempo import RHYTHM_SECONDS, STALL_SECONDS, Rhythm, Tempo


def test_the_first_token_has_a_wait_and_no_gap() -> None:
    tempo = Tempo(10.0)

    assert tempo.on_tokens(1, 10.4) is None
    assert tempo.first_token_seconds == pytest.approx(0.4)
    assert tempo.tokens_per_second() is None


def test_gaps_and_rate_are_from_first_to_last() -> None:
    tempo = Tempo(0.0)

    gaps = [tempo.on_tokens(1, now) for now in (5.0, 5.1, 5.3)]

    assert gaps == [None, pytest.approx(0.1), pytest.approx(0.2)]
    assert tempo.tokens_per_second() == pytest.approx(2 / 0.3)
    assert tempo.longest_gap_seconds == pytest.approx(0.2)


@pytest.mark.parametrize(("gap", "stalls"), [(STALL_SECONDS - 0.001, 0), (STALL_SECONDS, 1), (STALL_SECONDS + 1, 1)])
def test_a_long_gap_is_a_stall(gap: float, stalls: int) -> None:
    tempo = Tempo(0.0)
    tempo.on_tokens(1, 0.0)

    tempo.on_tokens(1, gap)

    assert tempo.stalls == stalls


def test_waiting_for_the_first_token_is_no_stall() -> None:
    tempo = Tempo(0.0)

    tempo.on_tokens(1, 60.0)

    assert tempo.stalls == 0


def test_a_rhythm_is_told_once_a_second_and_covers_what_came_since() -> None:
    tempo = Tempo(0.0)
    tempo.on_tokens(1, 1.0)
    tempo.on_tokens(9, 1.5)

    too_early = tempo.rhythm(1.0 + RHYTHM_SECONDS - 0.01)
    first = tempo.rhythm(2.0)
    still = tempo.rhythm(4.0)

    assert too_early is None
    assert first == Rhythm(10.0, 100)
    assert still == Rhythm(0.0, 2_500)


def test_without_tokens_there_is_no_rhythm() -> None:
    assert Tempo(0.0).rhythm(100.0) is None
