"""The board on which gateways tell each other of their tenants' usage. For quotas only: nothing else depends on it."""

from typing import Protocol

from gateway.domain.wire.ids import GatewayId


class UsageBoard(Protocol):
    async def tell(self, gateway: GatewayId, usage: bytes, lease_seconds: float) -> list[bytes]:
        """Ours in place of what we told before; what all others told whose lease has not ended. One call.

        Raises StoreUnavailable. Repeatable.
        """
        ...

    async def withdraw(self, gateway: GatewayId) -> None:
        """Ours goes. Raises StoreUnavailable."""
        ...


__all__ = ["UsageBoard"]
