"""The way of media to other gateways."""

from typing import Protocol

from gateway.domain.wire.ids import GatewayId


class MediaBus(Protocol):
    """Apart from text: no append waits behind a picture."""

    def publish(self, gateway: GatewayId, message: bytes) -> bool:
        """Fire and forget, in order. False: dropped, as Redis is away or does not keep up."""
        ...


__all__ = ["MediaBus"]
