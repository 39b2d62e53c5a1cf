"""How a gateway gives connections away after the cluster grew."""

from typing import Any, Literal

from pydantic import Field, field_validator

from gateway.settings.topic import Topic


class RebalanceSettings(Topic):
    """A gateway well above the mean asks idle clients to move, slowly."""

    mode: Literal["off", "dry-run", "on"] = "on"
    """`dry-run` only counts and logs. Moves that lead back, where a balancer hashes sessions, are noticed and end."""
    within: float = Field(0.15, gt=0)
    """Share above the mean of all gateways that is even enough; above it, it goes on to the middle of it."""
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


__all__ = ["RebalanceSettings"]
