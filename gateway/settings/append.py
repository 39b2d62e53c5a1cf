"""What an append waits for before anybody sees it."""

from pydantic import Field

from gateway.settings.topic import Topic


class AppendSettings(Topic):
    """Durability of appends beyond the primary's memory (docs/redis.md)."""

    min_replicas: int = Field(0, ge=0, le=8)
    """So many replicas have a message before any client sees it and its producer is answered; with fewer it is 503
    `unreplicated`. 0: the primary's memory is enough; a fail-over may then lose what clients saw, and says so."""
    replica_wait_seconds: float = Field(0.5, ge=0.05, le=10)
    """How long one round waits for them; below `redis.call_timeout_seconds`. Rounds are repeated up to
    `redis.deadline_seconds`."""


__all__ = ["AppendSettings"]
