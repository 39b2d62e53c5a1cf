"""The index of deadlines in Redis (ports.Deadlines): 16 sorted sets, one member a session."""

from functools import cache
from itertools import count
from typing import Final
from zlib import crc32

from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.resp import SLOTS, Router, slot_of
from gateway.domain.wire.ids import SessionKey, SessionRef
from gateway.ports import DUE_SHARDS, Due

INDEX_MS: Final = 86_400_000
"""The index outlives its last deadline by a day."""


class RedisDeadlines:
    """Remembers nothing: an index that was lost with its server is written again by the next note."""

    def __init__(self, client: Router, scripts: ExchangeScripts, *, is_cluster: bool = False) -> None:
        """The same in all gateways: on a cluster a session's deadlines are, as a rule, on the server that has it."""
        self._client = client
        self._scripts = scripts
        self._shard_of = shard_of_slot if is_cluster else shard_of
        self._key = slot_due_key if is_cluster else due_key

    async def note(self, session: SessionRef, in_ms: int) -> int:
        server_ms: int = await self._client.evaluate(
            self._scripts.due_note,
            (self._key(self._shard_of(session.key)),),
            (session.key, in_ms, INDEX_MS),
            repeats=True,
        )
        return server_ms

    async def due(self, shard: int, limit: int) -> list[Due]:
        found = await self._client.evaluate(self._scripts.due_read, (self._key(shard),), (limit,), repeats=True)
        return [
            Due(SessionKey(found[place]), shard, found[place + 1].decode(), found[place + 2])
            for place in range(0, len(found), 3)
        ]

    async def settle(self, due: Due, next_in_ms: int | None) -> None:
        arguments = (due.session, due.score, "" if next_in_ms is None else next_in_ms)
        await self._client.evaluate(self._scripts.due_settle, (self._key(due.shard),), arguments, repeats=True)


def shard_of(session: SessionKey) -> int:
    return crc32(session) % DUE_SHARDS


def due_key(shard: int) -> bytes:
    return b"rr:due:%d" % shard


def shard_of_slot(session: SessionKey) -> int:
    """Shards are equal stretches of slots, and so are the shares of a cluster's servers."""
    return slot_of(session) * DUE_SHARDS // SLOTS


@cache
def slot_due_key(shard: int) -> bytes:
    """In a slot of its own stretch: when a server is away, only its own sessions miss it."""
    return next(
        key for number in count() if slot_of(key := b"rr:due:{%d.%d}" % (shard, number)) * DUE_SHARDS // SLOTS == shard
    )


__all__ = ["RedisDeadlines", "due_key", "shard_of", "shard_of_slot", "slot_due_key"]
