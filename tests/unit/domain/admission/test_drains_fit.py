"""The slots of drains and the budget of who takes their clients: with the defaults every return finds its token."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.admission.bucket import Bucket
from gateway.domain.admission.rate import Rate, ns
from gateway.domain.sessions.drain_plan import DrainTimes, Returns, Standing, plan_drain
from gateway.settings import Settings

SETTINGS = Settings()
AT_ONCE = int(SETTINGS.admission.resumes_per_second // SETTINGS.drain.returns_per_second)
"""Drains whose clients one gateway has tokens for: three."""


def returns_of(count: int, time_left_seconds: float) -> list[float]:
    drain = SETTINGS.drain
    times = DrainTimes(
        pace_seconds=drain.pace_ms / 1000,
        window_seconds=drain.window_seconds,
        time_left_seconds=time_left_seconds,
        overlap_seconds=drain.overlap_seconds,
        returns_per_second=drain.returns_per_second,
    )
    slots = plan_drain([Standing.IDLE] * count, times, Returns(times.returns_per_second))
    return [slot.return_at_seconds for slot in slots]


@given(st.lists(st.tuples(st.integers(1, 1_500), st.floats(-1, 25), st.floats(0, 20)), min_size=1, max_size=AT_ONCE))
def test_the_clients_of_several_drains_at_once_find_a_token_each_on_the_only_gateway_left(
    drains: list[tuple[int, float, float]],
) -> None:
    """Whenever each began, and however little time it has."""
    admission = SETTINGS.admission
    bucket = Bucket(Rate(admission.resumes_per_second, admission.resumes_burst))
    arrivals = sorted(began + at for count, left, began in drains for at in returns_of(count, left))

    assert all(bucket.take(ns(at)) for at in arrivals)
