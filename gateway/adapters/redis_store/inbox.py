"""The shards of a tenant's inbox in Redis (ports.Inbox): a stream with leases each, there only while something waits.

Each shard is one slot and each call of it one script; what spans shards is not atomic, and needs not be.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from gateway.adapters.redis_store.all_answers import all_answers
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.resp import Reply, Router, Script
from gateway.domain.wire.ids import GatewayId, Tenant, encode_part
from gateway.ports import InboxItem, InboxLag, StoreUnavailable
from gateway.ports.inbox import QUEUE_SHARDS_FROM


class _Keys(NamedTuple):
    stream: bytes
    size: bytes
    waiters: bytes
    dead: bytes


class RedisInbox:
    """`shards` is the same in all gateways of an installation."""

    def __init__(
        self, client: Router, scripts: ExchangeScripts, *, shards: int, webhook_tenants: Collection[str] = ()
    ) -> None:
        self._client = client
        self._scripts = scripts
        self._shards = shards
        self._webhook_tenants = frozenset(webhook_tenants)
        self._first = 0

    async def deposit(self, tenant: Tenant, shard: int, items: Sequence[bytes]) -> bool:
        keys = _keys(tenant, shard)
        stored = await self._call(self._scripts.deposit, keys[:3], (encode_part(tenant), *items), repeats=False)
        return bool(stored)

    async def take(
        self,
        tenant: Tenant,
        consumer: str,
        limit: int,
        lease_ms: int,
        waiter: GatewayId | None = None,
        *,
        for_webhooks: bool = False,
    ) -> list[InboxItem]:
        """Begins at another shard each time, so that none starves. The shards of a server that is away are left out."""
        first, self._first = self._first, (self._first + 1) % self._shards
        base = 0 if for_webhooks or tenant not in self._webhook_tenants else QUEUE_SHARDS_FROM
        taken: list[InboxItem] = []
        away: dict[str, StoreUnavailable] = {}
        left_out = 0
        for place in range(self._shards):
            shard = base + (first + place) % self._shards
            arguments = (consumer, limit - len(taken), lease_ms, "" if waiter is None or taken else waiter)
            keys = _keys(tenant, shard)
            server = self._client.of(keys.stream).incarnation
            if server in away:
                left_out += 1
                continue
            try:
                found = await self._call(self._scripts.take, keys, arguments, repeats=False)
            except StoreUnavailable as exc:
                away[server] = exc
                left_out += 1
                continue
            taken += [
                InboxItem(shard, found[place].decode(), found[place + 1], found[place + 2])
                for place in range(0, len(found), 3)
            ]
            if len(taken) >= limit:
                break
        if left_out == self._shards:
            raise next(iter(away.values()))
        return taken

    async def leave(self, tenant: Tenant, waiter: GatewayId) -> None:
        await all_answers(
            [self._client.call("ZREM", _keys(tenant, shard).waiters, waiter) for shard in self._all(tenant)]
        )

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int:
        calls = [
            self._call(self._scripts.ack, _keys(tenant, shard)[:2], entries, repeats=True)
            for shard, entries in self._by_shard(items).items()
        ]
        return sum(await all_answers(calls))

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int:
        calls = [
            self._call(self._scripts.extend, _keys(tenant, shard)[:1], (consumer, *entries), repeats=True)
            for shard, entries in self._by_shard(items).items()
        ]
        return sum(sum(held) for held in await all_answers(calls))

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int:
        calls = []
        for shard, entries in self._by_shard(items).items():
            stream, size, _, dead = _keys(tenant, shard)
            calls.append(self._call(self._scripts.bury, (stream, size, dead), (reason, *entries), repeats=True))
        return sum(await all_answers(calls))

    async def dead(self, tenant: Tenant, limit: int) -> list[tuple[str, bytes, str]]:
        shards = self._all(tenant)
        calls = [self._client.call("XRANGE", _keys(tenant, shard).dead, "-", "+", "COUNT", limit) for shard in shards]
        found: list[tuple[int, str, bytes, str]] = []
        for shard, letters in zip(shards, await all_answers(calls), strict=True):
            for ident, (_, item, _, reason) in letters:
                entry = ident.decode()
                found.append((int(entry.partition("-")[0]), f"{shard}/{entry}", item, reason.decode()))
        return [(entry, item, reason) for _, entry, item, reason in sorted(found)[:limit]]

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int:
        wanted: dict[int, list[str]] = {}
        if entries:
            pairs = [entry.partition("/") for entry in entries]
            known = [(int(shard), ident) for shard, _, ident in pairs if shard.isascii() and shard.isdigit()]
            wanted = self._by_shard(known)
            return sum([await self._redrive(tenant, shard, (0, *idents)) for shard, idents in wanted.items()])
        total = 0
        for shard in self._all(tenant):
            while moved := await self._redrive(tenant, shard, (_REDRIVE_ITEMS,)):
                total += moved
        return total

    async def lag(self, tenant: Tenant) -> InboxLag:
        calls = []
        for shard in self._all(tenant):
            stream, _, _, dead = _keys(tenant, shard)
            calls.append(self._call(self._scripts.lag, (stream, dead), (), repeats=True))
        lags = await all_answers(calls)
        return InboxLag(sum(lag[0] for lag in lags), sum(lag[1] for lag in lags), max(lag[2] for lag in lags))

    async def _redrive(self, tenant: Tenant, shard: int, what: Iterable[str | int]) -> int:
        arguments = (encode_part(tenant), *what)
        return int(await self._call(self._scripts.redrive, _keys(tenant, shard), arguments, repeats=False))

    def _all(self, tenant: Tenant) -> list[int]:
        shards = list(range(self._shards))
        if tenant in self._webhook_tenants:
            shards += [QUEUE_SHARDS_FROM + shard for shard in shards]
        return shards

    def _by_shard(self, items: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
        """Entries that cannot be are left out: they come from outside."""
        found: dict[int, list[str]] = {}
        for shard, entry in items:
            place = shard - QUEUE_SHARDS_FROM if shard >= QUEUE_SHARDS_FROM else shard
            if 0 <= place < self._shards and _is_entry(entry):
                found.setdefault(shard, []).append(entry)
        return found

    def _call(
        self, script: Script, keys: Sequence[bytes], arguments: Iterable[bytes | str | int], *, repeats: bool
    ) -> "asyncio.Future[Reply]":
        return self._client.evaluate(script, keys, arguments, repeats=repeats)


_REDRIVE_ITEMS = 100
"""In one script: about what a shard takes in one deposit."""


def _keys(tenant: Tenant, shard: int) -> _Keys:
    start = f"rr:inbox:{{{encode_part(tenant)},{shard}}}".encode()
    return _Keys(start, start + b":bytes", start + b":waiters", start + b":dead")


def _is_entry(entry: str) -> bool:
    ms, _, place = entry.partition("-")
    return entry.isascii() and ms.isdigit() and place.isdigit() and len(entry) <= 40


__all__ = ["RedisInbox"]
