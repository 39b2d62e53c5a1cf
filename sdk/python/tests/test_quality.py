"""The quality score, and when whole segments are handed out (A11)."""

import pytest
from relayrouter.options import Timing
from relayrouter.quality import Quality


@pytest.mark.parametrize(
    ("rtt", "level", "score"), [(0.05, "good", 1.0), (0.1, "good", 1.0), (0.8, "fair", 0.4), (0.9, "poor", 0.314)]
)
def test_a_round_trip_has_a_level(rtt: float, level: str, score: float) -> None:
    """At the limit of degradation a quiet link is just fair."""
    quality = Quality(Timing())
    quality.note_rtt(rtt, 0.0)

    assert (quality.now(0.0).level, quality.now(0.0).score) == (level, score)


def test_lost_connections_count_for_a_minute() -> None:
    """Three of them make a good link a fair one."""
    quality = Quality(Timing())
    for _ in range(3):
        quality.note_loss(10.0)

    assert quality.now(11.0).level == "fair"
    assert quality.now(69.9).level == "fair"
    assert quality.now(70.0).score == 1.0


def test_round_trips_are_smoothed() -> None:
    """One slow answer is no slow link."""
    quality = Quality(Timing())
    quality.note_rtt(0.1, 0.0)
    quality.note_rtt(2.0, 1.0)

    assert quality.rtt_seconds == pytest.approx(0.575)
    assert not quality.is_degraded(1.0)


@pytest.mark.parametrize("cause", ["rtt", "lag"])
def test_it_degrades_at_once_and_recovers_after_ten_seconds(cause: str) -> None:
    """Above the limit, not at it."""
    quality = Quality(Timing())
    quality.note_lag(2.0, 0.0)
    quality.note_rtt(0.8, 0.0)
    assert not quality.is_degraded(0.0)
    if cause == "lag":
        quality.note_lag(2.001, 5.0)
    else:
        quality.note_rtt(0.81, 5.0)

    assert quality.is_degraded(5.0)
    assert quality.is_degraded(14.9)
    assert not quality.is_degraded(15.0)


def test_only_news_is_told() -> None:
    """Another level, or a tenth of the score."""
    quality = Quality(Timing())
    assert quality.news(0.0) is not None
    assert quality.news(1.0) is None
    quality.note_rtt(0.2, 2.0)
    assert quality.news(2.0) is None
    quality.note_loss(3.0)
    assert quality.news(3.0) is not None
