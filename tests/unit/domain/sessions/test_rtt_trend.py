"""The early warning: P99 of the last minute against that of the quarter of an hour before (B7)."""

import pytest

from gateway.domain.measures import RTT_BOUNDS, Histogram
from gateway.domain.sessions.rtt_trend import LEAST_MINUTES, LEAST_ROUND_TRIPS, MINUTE_SECONDS, STEP_SECONDS, RttTrend


class Network:
    """Twenty round trips a step."""

    def __init__(self) -> None:
        self.trend = RttTrend(RTT_BOUNDS)
        self._histogram = Histogram(RTT_BOUNDS)
        self._now = 0.0

    def passes(self, seconds: float, rtt: float, times: int = 20) -> list[bool]:
        """What the trend said after each step."""
        found = []
        for _ in range(int(seconds / STEP_SECONDS)):
            self._now += STEP_SECONDS
            self._histogram.observe(rtt, times)
            self.trend.note(self._now, self._histogram.counts)
            found.append(self.trend.is_rising)
        return found


def test_a_network_that_stays_as_it_is_warns_nobody() -> None:
    assert not any(Network().passes(1800, 0.15))


def test_round_trips_that_get_much_longer_warn_within_the_minute() -> None:
    network = Network()
    network.passes(600, 0.15)

    assert network.passes(60, 0.9)[-1]
    assert network.trend.ratio > 2


def test_a_few_slow_clients_are_not_the_network() -> None:
    """Less than one in a hundred."""
    network = Network()
    network.passes(600, 0.15, 400)
    network.passes(60, 0.15, 400)
    network._histogram.observe(0.9, 5)

    assert not any(network.passes(60, 0.15, 400))


def test_it_ends_when_the_round_trips_are_short_again() -> None:
    network = Network()
    network.passes(600, 0.15)
    network.passes(120, 0.9)

    assert not network.passes(120, 0.15)[-1]


def test_what_stays_slow_is_the_new_ordinary_after_a_while() -> None:
    network = Network()
    network.passes(900, 0.15)

    found = network.passes(900, 0.9)

    assert all(found[12 : int(360 / STEP_SECONDS)])
    assert not found[-1]


@pytest.mark.parametrize(("recent", "is_rising"), [(LEAST_ROUND_TRIPS - 1, False), (LEAST_ROUND_TRIPS, True)])
def test_too_few_round_trips_say_nothing(recent: int, is_rising: bool) -> None:
    network = Network()
    network.passes(600, 0.15)
    network.passes(MINUTE_SECONDS + STEP_SECONDS, 0.15, 0)

    network.passes(STEP_SECONDS, 0.9, recent)

    assert network.trend.is_rising is is_rising


@pytest.mark.parametrize(("minutes", "is_rising"), [(LEAST_MINUTES - 1, False), (LEAST_MINUTES, True)])
def test_a_gateway_that_has_just_started_knows_no_ordinary(minutes: int, is_rising: bool) -> None:
    network = Network()
    network.passes(minutes * MINUTE_SECONDS, 0.15)

    assert network.passes(30, 0.9)[-1] is is_rising


def test_between_its_thresholds_it_stays_what_it_was() -> None:
    """Raised above 2, lowered below 1.4: at 2.0 there is no warning of its own, and none that ends."""
    calm, warned = Network(), Network()
    calm.passes(600, 0.3)  # between 0.2 and 0.4 s: a P99 of 0.398
    warned.passes(600, 0.3)
    warned.passes(60, 1.4)

    assert not any(calm.passes(120, 0.7))  # between 0.4 and 0.8 s: 0.796
    assert all(warned.passes(120, 0.7))


def test_milliseconds_warn_nobody() -> None:
    network = Network()
    network.passes(600, 0.001)

    assert not any(network.passes(120, 0.04))
