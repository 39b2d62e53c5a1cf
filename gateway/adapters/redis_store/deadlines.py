"""The index of deadlines in Redis (ports.Deadlines): 16 sorted sets, one member a session."""

from collections import OrderedDict
from typing import Final, NamedTuple
from zlib import crc32

from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.resp import Client
from gateway.domain.wire.ids import SessionKey, SessionRef
from gateway.ports import DUE_SHARDS, Clock, Due

CACHE_SECONDS: Final = 10.0
"""Half of a note's life: a caller has as much again to write its state."""
MAX_CACHED: Final = 20_000
"""Sessions; about 4 MiB. The longest unused goes first."""
INDEX_MS: Final = 86_400_000
"""The index outlives its last deadline by a day."""


class _Noted(NamedTuple):
    """On our clock: when it was asked, and between which moments its deadline lies."""

    at: float
    earliest: float
    latest: float
    server_ms: int


class RedisDeadlines:
    """One per gateway, because of its cache."""

    def __init__(self, client: Client, scripts: ExchangeScripts, clock: Clock) -> None:
        self._client = client
        self._scripts = scripts
        self._clock = clock
        self._noted: OrderedDict[SessionKey, _Noted] = OrderedDict()

    async def note(self, session: SessionRef, in_ms: int) -> int:
        """A cached note holds only while its deadline is ahead: until then no sweep can have touched its entry."""
        asked = self._clock()
        wanted = asked + in_ms / 1000
        noted = self._noted.get(session.key)
        if noted is not None and asked - noted.at < CACHE_SECONDS and asked < noted.earliest and noted.latest <= wanted:
            self._noted.move_to_end(session.key)
            return noted.server_ms
        server_ms: int = await self._client.evaluate(
            self._scripts.due_note, (due_key(shard_of(session.key)),), (session.key, in_ms, INDEX_MS), repeats=True
        )
        latest = self._clock() + in_ms / 1000
        self._noted[session.key] = _Noted(asked, wanted, latest, server_ms)
        self._noted.move_to_end(session.key)
        if len(self._noted) > MAX_CACHED:
            self._noted.popitem(last=False)
        return server_ms

    async def due(self, shard: int, limit: int) -> list[Due]:
        found = await self._client.evaluate(self._scripts.due_read, (due_key(shard),), (limit,), repeats=True)
        return [
            Due(SessionKey(found[place]), shard, found[place + 1].decode(), found[place + 2])
            for place in range(0, len(found), 3)
        ]

    async def settle(self, due: Due, next_in_ms: int | None) -> None:
        arguments = (due.session, due.score, "" if next_in_ms is None else next_in_ms)
        await self._client.evaluate(self._scripts.due_settle, (due_key(due.shard),), arguments, repeats=True)


def shard_of(session: SessionKey) -> int:
    return crc32(session) % DUE_SHARDS


def due_key(shard: int) -> bytes:
    return b"rr:due:%d" % shard


__all__ = ["CACHE_SECONDS", "RedisDeadlines", "due_key", "shard_of"]
