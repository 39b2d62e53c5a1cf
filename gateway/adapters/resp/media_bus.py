"""Media on gateways' channels, through the connection that reads (ports.MediaBus): no append waits behind a picture."""

from typing import Final

from gateway.adapters.resp.endpoint import Router
from gateway.adapters.resp.subscription import channel_of
from gateway.domain.wire.ids import GatewayId

MAX_WAITING_BYTES: Final = 4 * 1024**2
"""Unsent, media or not: beyond it pages of the log come first."""


class RedisMediaBus:
    """One per gateway."""

    def __init__(self, client: Router) -> None:
        self._client = client

    def publish(self, gateway: GatewayId, message: bytes) -> bool:
        if not self._client.is_up or self._client.waiting_bytes > MAX_WAITING_BYTES:
            return False
        self._client.publish(channel_of(gateway), message)
        return True


__all__ = ["MAX_WAITING_BYTES", "RedisMediaBus"]
