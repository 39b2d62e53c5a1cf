"""Which runs may be used for a latency."""

import pytest

from loadtest.bench.watch import MAX_FOREIGN, MAX_LATE_P99_MS, MAX_LOAD_CORE, reason_against

_LEAST = 0.001


def test_a_run_at_every_limit_can_be_used() -> None:
    assert not reason_against(late_p99_ms=MAX_LATE_P99_MS, load_core=MAX_LOAD_CORE, foreign=MAX_FOREIGN)


@pytest.mark.parametrize(
    ("late_p99_ms", "load_core", "foreign", "reason"),
    [
        (MAX_LATE_P99_MS + _LEAST, 0.0, 0.0, "late"),
        (0.0, MAX_LOAD_CORE + _LEAST, 0.0, "busy"),
        (0.0, 0.0, MAX_FOREIGN + _LEAST, "other programs"),
    ],
)
def test_a_run_beyond_one_limit_says_which(late_p99_ms: float, load_core: float, foreign: float, reason: str) -> None:
    assert reason in reason_against(late_p99_ms=late_p99_ms, load_core=load_core, foreign=foreign)
