"""When video falls back to audio only, and when it comes back (B10)."""

import pytest

from gateway.domain.streams.media_pressure import AFTER_SECONDS, LOOK_SECONDS, UNTIL_SECONDS, Pressure


def look(pressure: Pressure, now: float, *, bad: bool = False, much: bool = False, may: bool = True) -> bool:
    pressure.look(now, is_behind=bad, is_too_much=much, may_drop_video=may)
    return pressure.is_audio_only


@pytest.mark.parametrize(
    ("seconds", "is_so"), [(AFTER_SECONDS - 0.1, False), (AFTER_SECONDS, True), (AFTER_SECONDS + 0.1, True)]
)
def test_being_behind_counts_when_it_lasts(seconds: float, is_so: bool) -> None:
    """A burst of text is no reason."""
    pressure = Pressure()
    look(pressure, 0, bad=True)

    assert look(pressure, seconds, bad=True) is is_so


def test_thinning_that_was_not_enough_counts_at_once() -> None:
    """Key frames were dropped: what is left of video is of no use."""
    assert look(Pressure(), 0, much=True)


@pytest.mark.parametrize(
    ("seconds", "is_so"), [(UNTIL_SECONDS - 0.1, True), (UNTIL_SECONDS, False), (UNTIL_SECONDS + 0.1, False)]
)
def test_video_comes_back_when_it_was_well_for_long_enough(seconds: float, is_so: bool) -> None:
    """Each bad look begins that time anew."""
    pressure = Pressure()
    look(pressure, 0, much=True)
    look(pressure, 1)
    look(pressure, 2, bad=True)
    look(pressure, 3)

    assert look(pressure, 3 + seconds) is is_so


def test_where_it_is_not_allowed_it_does_not_happen() -> None:
    """And ends at once when a new policy forbids it."""
    pressure = Pressure()

    assert not look(pressure, 0, much=True, may=False)
    assert look(pressure, 1, much=True)
    assert not look(pressure, 2, may=False)


def test_being_behind_long_ago_and_again_now_is_no_long_time() -> None:
    """Nobody looked between."""
    pressure = Pressure()
    look(pressure, 0, bad=True)

    assert not look(pressure, LOOK_SECONDS + 0.1, bad=True)
