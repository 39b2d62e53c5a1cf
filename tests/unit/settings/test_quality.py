"""Settings of quality: what is fair is less than what is poor."""

import pytest
from pydantic import ValidationError

from gateway.core.qualities import thresholds_of
from gateway.settings import QualitySettings


def test_thresholds_are_in_seconds() -> None:
    assert thresholds_of(QualitySettings()) == (0.3, 0.8)


@pytest.mark.parametrize(("fair", "is_refused"), [(799, False), (800, True), (801, True)])
def test_fair_must_be_below_poor(fair: int, is_refused: bool) -> None:
    if not is_refused:
        assert QualitySettings(fair_rtt_ms=fair).fair_rtt_ms == fair
        return
    with pytest.raises(ValidationError, match="must be below poor_rtt_ms 800"):
        QualitySettings(fair_rtt_ms=fair)
