"""The rule of quality: worse at once, better when it lasts, and no flapping (A4, A11)."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.sessions.quality import (
    CALM,
    LASTS_SECONDS,
    UNSETTLED_SECONDS,
    WORST,
    Level,
    Quality,
    Thresholds,
)

THRESHOLDS = Thresholds()
RANK = {Level.GOOD: 0, Level.FAIR: 1, Level.POOR: 2}
rtts = st.floats(0, 5)
backlogs = st.floats(0, 1)


def levels(samples: Sequence[tuple[float, float]], quality: Quality | None = None, start: float = 0.0) -> list[Level]:
    """After each (round trip, backlog), a second apart."""
    quality = quality or Quality(THRESHOLDS)
    found = []
    for second, (rtt, backlog) in enumerate(samples):
        quality.on_rtt(rtt)
        quality.look(start + second, backlog)
        found.append(quality.level)
    return found


def changes(found: Sequence[Level]) -> int:
    return sum(one is not other for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("rtt", "level"),
    [
        (0.3, Level.GOOD),
        (0.301, Level.FAIR),
        (0.8, Level.FAIR),
        (0.801, Level.POOR),
    ],
)
def test_levels_begin_above_their_thresholds(rtt: float, level: Level) -> None:
    assert levels([(rtt, 0.0)]) == [level]


@pytest.mark.parametrize(("backlog", "level"), [(0.5, Level.GOOD), (0.6, Level.FAIR), (1.0, Level.POOR)])
def test_a_backlog_that_stays_makes_it_worse(backlog: float, level: Level) -> None:
    assert levels([(0.01, backlog)] * 8)[-1] is level


def test_one_full_window_alone_is_a_burst_and_not_a_bad_network() -> None:
    assert levels([(0.01, 0.0), (0.01, 1.0), (0.01, 0.0)]) == [Level.GOOD] * 3


@given(centre=st.sampled_from([0.3, 0.8]), swings=st.lists(st.floats(-0.12, 0.12), min_size=20, max_size=60))
def test_round_trips_around_a_threshold_do_not_flap(centre: float, swings: list[float]) -> None:
    """Whatever they do within 12 % of it: it changes once at most, and once more for the first sample's sake."""
    found = levels([(centre * (1 + swing), 0.0) for swing in swings])

    assert changes(found) <= 1


@given(high=st.floats(0.9, 5), low=st.floats(0, 0.2), period=st.integers(1, 3))
def test_good_moments_shorter_than_it_takes_do_not_flap(high: float, low: float, period: int) -> None:
    """Poor, with single good measurements between: it stays poor."""
    samples = ([(high, 0.0)] * period + [(low, 0.0)]) * 12

    assert changes(levels(samples)) <= 2  # a way down at the beginning, no way up


@given(st.lists(st.tuples(rtts, backlogs, rtts, backlogs), min_size=1, max_size=30))
def test_a_network_that_is_never_better_is_never_judged_better(pairs: list[tuple[float, float, float, float]]) -> None:
    """Monotone in every signal, over whole histories."""
    better = levels([(min(a, c), min(b, d)) for a, b, c, d in pairs])
    worse = levels([(max(a, c), max(b, d)) for a, b, c, d in pairs])

    assert all(RANK[one] <= RANK[other] for one, other in zip(better, worse, strict=True))


@given(st.lists(st.tuples(st.floats(0, 100), backlogs), max_size=30))
def test_it_recovers_within_ten_seconds_from_everything(history: list[tuple[float, float]]) -> None:
    quality = Quality(THRESHOLDS)
    levels(history, quality)

    found = levels([(0.02, 0.0)] * 10, quality, start=float(len(history)))

    assert found[-1] is Level.GOOD


def test_better_counts_only_when_it_lasts() -> None:
    quality = Quality(THRESHOLDS)
    quality.on_rtt(1.0)
    quality.look(0.0, 0.0)
    quality.rtt_seconds = 0.01

    assert not quality.look(1.0, 0.0)
    assert not quality.look(1.0 + LASTS_SECONDS - 0.01, 0.0)
    assert quality.look(1.0 + LASTS_SECONDS, 0.0)
    assert quality.level is Level.GOOD


@pytest.mark.parametrize(("share", "stays"), [(CALM + 0.01, True), (CALM, False)])
def test_a_level_ends_lower_than_it_begins(share: float, stays: bool) -> None:
    quality = Quality(THRESHOLDS)
    quality.on_rtt(2.0)
    quality.look(0.0, 0.0)
    quality.rtt_seconds = THRESHOLDS.poor_rtt_seconds * share
    for second in range(1, 8):
        quality.look(float(second), 0.0)

    assert (quality.level is Level.POOR) is stays


def test_an_unanswered_ping_counts_as_a_round_trip_of_at_least_so_long() -> None:
    quality = Quality(THRESHOLDS)
    quality.on_rtt(0.1)

    quality.look(0.0, 0.0, 0.4)
    assert quality.level is Level.GOOD
    quality.look(1.0, 0.0, 1.6)
    assert quality.level is Level.POOR
    assert quality.rtt_seconds == 0.1  # nothing was measured


@pytest.mark.parametrize(
    ("returns", "level"), [(2, Level.GOOD), (3, Level.FAIR), (5, Level.FAIR), (6, Level.POOR), (7, Level.POOR)]
)
def test_who_comes_back_again_and_again_is_on_a_bad_network_for_a_while(returns: int, level: Level) -> None:
    quality = Quality(THRESHOLDS)
    quality.on_returns(returns, 0.0)
    quality.look(1.0, 0.0)
    assert quality.level is level

    for second in range(11, 16):
        quality.look(float(second), 0.0)
    assert quality.level is Level.GOOD


def test_a_return_is_over_when_it_has_settled() -> None:
    quality = Quality(THRESHOLDS)
    quality.on_returns(6, 0.0)

    assert not quality.look(UNSETTLED_SECONDS, 0.0)


@given(rtts, rtts)
def test_the_score_falls_with_the_round_trip(one: float, other: float) -> None:
    scores = []
    for rtt in sorted((one, other)):
        quality = Quality(THRESHOLDS)
        quality.on_rtt(rtt)
        scores.append(quality.score)

    assert 1 >= scores[0] >= scores[1] >= 0


def test_what_it_says_in_the_route() -> None:
    quality = Quality(THRESHOLDS)
    assert quality.summary == "good 1.0"
    quality.on_rtt(0.8 * WORST)
    quality.look(0.0, 0.0)

    assert quality.summary == "poor 0.14"


def test_the_first_answer_that_is_late_says_how_long_it_is_awaited() -> None:
    quality = Quality(THRESHOLDS)
    assert quality.apparent_rtt_seconds is None

    quality.look(0.0, 0.0, 1.2)
    assert (quality.apparent_rtt_seconds, quality.rtt_seconds) == (1.2, None)
    assert quality.score < 0.5

    quality.on_rtt(0.0)
    quality.look(1.0, 0.0)
    assert quality.apparent_rtt_seconds == 0.0
