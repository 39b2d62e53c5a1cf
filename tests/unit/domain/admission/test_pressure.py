"""Watermarks: who is refused when, that one late moment refuses nobody, and that a mark is left lower than reached."""

import pytest

from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.pressure import LAG_SAMPLES, Marks, Memory, Openness, Pressure

MARKS = Marks(0.5, 2.0, 0.85, 0.95)
KINDS = (Kind.NEW, Kind.RESUME, Kind.READ)


def late(*samples: float) -> Pressure:
    pressure = Pressure(MARKS)
    for sample in samples:
        pressure.observe_lag(sample)
    return pressure


def refused(pressure: Pressure) -> list[str | None]:
    return [pressure.refuses(kind) for kind in KINDS]


@pytest.mark.parametrize(
    ("seconds", "openness", "reasons"),
    [
        (0.0, Openness.OPEN, [None, None, None]),
        (0.49, Openness.OPEN, [None, None, None]),
        (0.5, Openness.NO_NEW, ["lag", None, None]),
        (1.99, Openness.NO_NEW, ["lag", None, None]),
        (2.0, Openness.NONE, ["lag", "lag", "lag"]),
        (1000.0, Openness.NONE, ["lag", "lag", "lag"]),
    ],
)
def test_new_clients_are_refused_before_those_that_come_back(
    seconds: float, openness: Openness, reasons: list[str | None]
) -> None:
    pressure = late(*[seconds] * LAG_SAMPLES)

    assert (pressure.openness, refused(pressure)) == (openness, reasons)


@pytest.mark.parametrize("count", [1, 2])
def test_one_long_stop_refuses_nobody(count: int) -> None:
    """A process that was frozen for a minute is not overloaded."""
    pressure = late(0, 0, 0, *[60.0] * count)

    assert pressure.openness is Openness.OPEN
    assert pressure.lag_seconds == pytest.approx(60 * count / LAG_SAMPLES)


def test_lag_must_fall_to_half_before_new_clients_come_again() -> None:
    pressure = late(*[0.6] * LAG_SAMPLES)
    seen = []
    for seconds in (0.4, 0.26, 0.24):
        for _ in range(LAG_SAMPLES):
            pressure.observe_lag(seconds)
        seen.append(pressure.refuses(Kind.NEW))

    assert seen == ["lag", "lag", None]


@pytest.mark.parametrize(
    ("share", "reasons"),
    [
        (0.8499, [None, None, None]),
        (0.85, ["memory", None, None]),
        (0.9499, ["memory", None, None]),
        (0.95, ["memory", "memory", "memory"]),
    ],
)
def test_memory_refuses_new_clients_first(share: float, reasons: list[str | None]) -> None:
    pressure = Pressure(MARKS)
    pressure.observe_memory(share)

    assert refused(pressure) == reasons


def test_memory_must_fall_a_little_before_they_come_again() -> None:
    pressure = Pressure(MARKS)
    seen = []
    for share in (0.86, 0.84, 0.81, 0.79, 0.84):
        pressure.observe_memory(share)
        seen.append(pressure.refuses(Kind.NEW))

    assert seen == ["memory", "memory", "memory", None, None]


def test_a_limit_that_nobody_knows_is_never_reached() -> None:
    assert Memory(10**12, 0).share == 0.0
    assert Memory(50, 100).share == 0.5
