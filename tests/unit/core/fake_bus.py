"""The gateway's own channel in memory."""

from collections.abc import Callable

from gateway.domain.wire.ids import GatewayId
from gateway.ports import BusListener


class FakeBus:
    """Keeps what is published; `deliver` decides what its gateway hears of it."""

    def __init__(self) -> None:
        self.published: list[tuple[GatewayId, bytes]] = []
        self.resets: list[str] = []
        self.paths: list[bytes] = [b""]
        self.deliver: Callable[[bytes], None] = lambda _: None

    async def run(self, channel: GatewayId, listener: BusListener) -> None:
        raise AssertionError("tests tell the listener themselves")

    def reset(self, reason: str) -> None:
        self.resets.append(reason)

    def beat(self, gateway: GatewayId, on_sent: Callable[[bytes], None]) -> None:
        for path in self.paths:
            on_sent(path)
            self.publish(gateway, b"1b\n" + path)

    def publish(self, gateway: GatewayId, message: bytes) -> None:
        self.published.append((gateway, message))
        self.deliver(message)


__all__ = ["FakeBus"]
