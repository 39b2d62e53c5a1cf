"""The gateway's own channel: subscribe, deliver what each read brought, notice a dead link, subscribe again.

Owns one connection of its own. Must never wait for a listener. Implements ports.Bus.
"""
# Interface as promised; the implementation follows within the hour.

import random

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.client import Client
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import BusListener
from gateway.settings.redis import RedisSettings


def channel_of(gateway: GatewayId) -> bytes:
    return b"rr:ch:" + gateway.encode()


class Subscription:
    """`on_down` follows each `on_subscribed` exactly once; failed attempts in between are not told."""

    def __init__(
        self, address: Address, client: Client, settings: RedisSettings, *, rng: random.Random, measures: Measures
    ) -> None:
        raise NotImplementedError

    async def run(self, channel: GatewayId, listener: BusListener) -> None:
        raise NotImplementedError

    def reset(self, reason: str) -> None:
        raise NotImplementedError

    def publish(self, gateway: GatewayId, message: bytes) -> None:
        raise NotImplementedError


__all__ = ["Subscription", "channel_of"]
