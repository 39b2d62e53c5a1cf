"""Where the route decision table comes from."""

from pathlib import Path

from pydantic import Field

from gateway.settings.topic import Topic


class RoutingSettings(Topic):
    """By what channel, how urgently and how often each kind of message goes (docs/routes.md)."""

    file: Path | None = None
    """YAML, for example from a ConfigMap. Empty: the shipped table. A gateway does not start with one that is wrong;
    when it changes later, a wrong one leaves the one before in force."""
    poll_seconds: float = Field(1.0, ge=0.05, le=60)
    """How often the file and the decision about a canary are looked at; a change of the file is taken at the second
    look that sees it, so never in the middle of a write."""


__all__ = ["RoutingSettings"]
