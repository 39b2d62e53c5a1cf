"""How late a load generator was."""

import pytest

from loadtest.bench.schedule import late_p99


@pytest.mark.parametrize(
    ("lateness", "expected"),
    [
        ([(0.001, 100)], 0.001),
        ([(0.001, 99), (0.040, 1)], 0.001),
        ([(0.001, 98), (0.040, 2)], 0.040),
        ([(0.040, 2), (0.001, 97), (0.090, 1)], 0.040),
    ],
)
def test_of_a_hundred_messages_one_may_be_later(lateness: list[tuple[float, int]], expected: float) -> None:
    assert late_p99(lateness, 100) == expected
