"""What gateways tell each other of their tenants, in one hash (ports.UsageBoard)."""

import math

from gateway.adapters.redis_store.keys import QUOTAS
from gateway.adapters.redis_store.scripts import load
from gateway.adapters.resp import Router
from gateway.domain.wire.ids import GatewayId


class RedisUsageBoard:
    """Leases run by the server's clock."""

    def __init__(self, client: Router) -> None:
        self._client = client

    script = load("usage", {})
    """The same for every configuration."""

    async def tell(self, gateway: GatewayId, usage: bytes, lease_seconds: float) -> list[bytes]:
        lease_ms = max(1, math.ceil(lease_seconds * 1000))
        others: list[bytes] = await self._client.evaluate(
            self.script, (QUOTAS,), (gateway, usage, lease_ms), repeats=True
        )
        return others

    async def withdraw(self, gateway: GatewayId) -> None:
        await self._client.call("HDEL", QUOTAS, gateway)


__all__ = ["RedisUsageBoard"]
