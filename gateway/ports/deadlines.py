"""The index of deadlines (redis.md `rr:due:<shard>`): what must happen at a time although nobody may be watching."""

from typing import Final, NamedTuple, Protocol

from gateway.domain.wire.ids import SessionKey, SessionRef

DUE_SHARDS: Final = 16


class Due(NamedTuple):
    session: SessionKey
    shard: int
    score: str
    overdue_ms: int


class Deadlines(Protocol):
    """The index of deadlines; written before the state that it names."""

    async def note(self, session: SessionRef, in_ms: int) -> int:
        """Something of this session is due in so many ms. Returns the Redis time (ms) of the note, valid for 20 s."""
        ...

    async def due(self, shard: int, limit: int) -> list[Due]:
        """Overdue entries of one shard."""
        ...

    async def settle(self, due: Due, next_in_ms: int | None) -> None:
        """Move or (None) remove the entry, only if its score is still the one read."""
        ...


__all__ = ["DUE_SHARDS", "Deadlines", "Due"]
