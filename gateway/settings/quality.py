"""How the quality of a client's connection is judged, and what a poor one is given."""

from typing import Literal, Self

from pydantic import Field, model_validator

from gateway.settings.topic import Topic


class QualitySettings(Topic):
    """Quality per connection; docs/reconnects.md tells what it leads to."""

    degrade: Literal["coalesce", "none"] = "coalesce"
    """What a poor connection is given: its text merged, at most four frames a second for a run; or all as it comes."""
    fair_rtt_ms: int = Field(300, ge=10)
    """Smoothed round trip above which a connection is `fair`: a conversation is felt to be slow."""
    poor_rtt_ms: int = Field(800, ge=20)
    """Above it is `poor`: tokens one by one would stutter."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.fair_rtt_ms >= self.poor_rtt_ms:
            raise ValueError(f"fair_rtt_ms {self.fair_rtt_ms} must be below poor_rtt_ms {self.poor_rtt_ms}")
        return self


__all__ = ["QualitySettings"]
