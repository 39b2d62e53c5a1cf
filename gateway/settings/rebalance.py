"""How a gateway gives connections away after the cluster grew."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from gateway.settings.topic import Topic


class RebalanceSettings(Topic):
    """A gateway well above the mean asks idle clients to move, slowly."""

    mode: Literal["off", "dry-run", "on"] = "on"
    """`dry-run` only counts and logs. Moves that lead back, where a balancer hashes sessions, are noticed and end."""
    start_above: float = Field(0.3, gt=0)
    """Share above the mean of all gateways at which it begins; must hold for patience_seconds."""
    within: float = Field(0.15, ge=0)
    """Share above the mean at which it is even enough."""
    per_minute: int = Field(600, ge=1)
    """Clients asked in a minute at most: ten a second, a tenth of what others take back from a drain."""
    patience_seconds: float = Field(30, ge=0)
    """A roll-out or a storm passes by itself."""
    rest_seconds: float = Field(600, ge=0)
    """No connection younger than this is asked, so nobody is moved twice within it, by whichever gateway."""

    @field_validator("mode", mode="before")
    @classmethod
    def _read_yaml_words(cls, value: Any) -> Any:
        """YAML reads a bare `on` and `off` as booleans."""
        return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.within >= self.start_above:
            raise ValueError(
                f"within {self.within:g} must be below start_above {self.start_above:g}, or it would never rest"
            )
        return self


__all__ = ["RebalanceSettings"]
