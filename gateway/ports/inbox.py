"""The inbox shards of a tenant: what agents take, under leases."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from gateway.domain.wire.ids import GatewayId, Tenant

QUEUE_SHARDS_FROM: Final = 1_000
"""A tenant with webhooks has its shards twice: those below are the webhooks', those from here on (shard + this) are for
its other consumers: what the route table sends by `queue`. Without webhooks all is for consumers, in those below."""


class InboxItem(NamedTuple):
    """`deliveries` counts from 1; `entry` is what acknowledges it."""

    shard: int
    entry: str
    item: bytes
    deliveries: int


class InboxLag(NamedTuple):
    """`waiting`: not delivered or not acknowledged; `oldest_ms`: age of the oldest of them."""

    waiting: int
    dead: int
    oldest_ms: int


class Inbox(Protocol):
    """Shards of one tenant: at least once, with leases. One group of consumers."""

    async def deposit(self, tenant: Tenant, shard: int, items: Sequence[bytes]) -> bool:
        """In order, whole or not at all. False: full. Tells gateways where somebody waits (bus INBOX)."""
        ...

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
        """New items, and those whose lease ended. With `waiter`: that gateway is told of the next deposit."""
        ...

    async def leave(self, tenant: Tenant, waiter: GatewayId) -> None:
        """That gateway is not told of deposits any more."""
        ...

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int: ...

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int:
        """Their leases begin anew."""
        ...

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int:
        """To the dead letters."""
        ...

    async def dead(self, tenant: Tenant, limit: int) -> list[tuple[str, bytes, str]]:
        """(entry, item, reason), oldest first."""
        ...

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int:
        """Back into their shards; empty: all of them."""
        ...

    async def lag(self, tenant: Tenant) -> InboxLag: ...


__all__ = ["QUEUE_SHARDS_FROM", "Inbox", "InboxItem", "InboxLag"]
