"""The gateway's own channel."""

from collections.abc import Callable
from typing import Protocol

from gateway.domain.wire.ids import GatewayId


class Bus(Protocol):
    """The gateway's own channel. At most once; order per sender kept."""

    async def run(self, channel: GatewayId, listener: "BusListener") -> None:
        """Subscribe, deliver, re-subscribe with full jitter, for ever. Returns only by cancellation."""
        ...

    def reset(self, reason: str) -> None:
        """Drop the current link (it was found dead) and make a new one."""
        ...

    def beat(self, gateway: GatewayId, on_sent: Callable[[bytes], None]) -> None:
        """A BEACON through each connection by which messages are published, its field the connection's name.

        `on_sent` is told the name, at once or when the server has it; never of a server that does not answer.
        """
        ...

    def publish(self, gateway: GatewayId, message: bytes) -> None:
        """Fire and forget through the append connection, after what was sent there before."""
        ...


class BusListener(Protocol):
    """Called from the reading protocol itself: must not block, must not raise."""

    def on_subscribed(self) -> None:
        """SUBSCRIBE is confirmed: from here on messages arrive."""
        ...

    def on_messages(self, messages: list[bytes]) -> None:
        """All messages that one read brought, in order."""
        ...

    def on_down(self, reason: str) -> None: ...


__all__ = ["Bus", "BusListener"]
