"""The gateway's own channel in a cluster: at any server, for they pass on what is published; or, with
`redis.shard_publish`, at the one whose slot the channel is in (ports.Bus).
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.cluster_client import ClusterClient
from gateway.adapters.resp.cluster_map import ClusterMap
from gateway.adapters.resp.primary import Place, Primary
from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.adapters.resp.slots import slot_of
from gateway.adapters.resp.subscription import ChannelLink, Subscription, channel_of
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.ids import GatewayId
from gateway.ports import BusListener, StoreUnavailable
from gateway.settings.redis import RedisSettings
from gateway.settings.redis_url import shown_place


class BusWay(Primary):
    """Another server at each attempt; for a sharded channel the primary of its slot."""

    def __init__(self, cluster: ClusterMap, address: Address, settings: RedisSettings, rng: random.Random) -> None:
        super().__init__(address, settings)
        self._map = cluster
        self._turn = rng.randrange(1 << 16)
        self.slot: int | None = None
        """Of a sharded channel."""

    async def locate(self, connect_timeout_seconds: float) -> Place:
        """Raises OSError (a file), StoreUnavailable (nobody is known)."""
        self.place = None
        with suppress(TimeoutError):
            async with asyncio.timeout(connect_timeout_seconds):
                await self._map.known()
        if self.slot is not None:
            spot = self._map.owner(self.slot)
        else:
            spots = sorted(self._map.primaries)
            self._turn += 1
            spot = spots[self._turn % len(spots)] if spots else None
        if spot is None:
            self._map.hurry()
            raise StoreUnavailable("no server of the cluster is known yet", outcome_unknown=False)
        async with asyncio.timeout(connect_timeout_seconds):
            address, tls = self._address, None
            if address.needs_files:
                address, tls = await asyncio.to_thread(address.read_files)
        self.place = Place(address.at(*spot), tls)
        return self.place

    def why(self, exc: Exception) -> str:
        """What it says of slots is for the map, too."""
        if isinstance(exc, ReplyError) and self.place is not None:
            self._map.heard(exc, (self.place.address.host, self.place.address.port))
        else:
            self._map.hurry()
        return super().why(exc)


class ShardLink(ChannelLink):
    """Subscribed to a sharded channel; ends when its slot leaves the server."""

    VERB = b"SSUBSCRIBE"
    KIND = b"smessage"

    def _take_reply(self, reply: object) -> None:
        if isinstance(reply, list) and reply[0] == b"sunsubscribe":
            self.abort("the channel's slot has moved")
            return
        super()._take_reply(reply)


class ClusterSubscription(Subscription):
    """`moved` is for sentinels; here the map says where to go."""

    def __init__(
        self,
        cluster: ClusterMap,
        address: Address,
        client: ClusterClient,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
    ) -> None:
        self._bus_way = BusWay(cluster, address, settings, rng)
        self._is_sharded = settings.shard_publish
        self._nodes = client
        super().__init__(address, client, settings, rng=rng, measures=measures, way=self._bus_way)

    async def run(self, channel: GatewayId, listener: BusListener) -> None:
        if self._is_sharded:
            self._bus_way.slot = slot_of(channel_of(channel))
        await super().run(channel, listener)

    def beat(self, gateway: GatewayId, on_sent: Callable[[bytes], None]) -> None:
        """Through each primary that is connected: any of them may have lost its way to the one where we listen."""
        if self._is_sharded:
            super().beat(gateway, on_sent)
            return
        for node in self._nodes.nodes:
            if node.is_up:
                name = shown_place(*node.spot).encode()
                sent = node.call(b"PUBLISH", channel_of(gateway), encode_fields(BusKind.BEACON, name))
                sent.add_done_callback(partial(_when_answered, on_sent, name))

    def _make_link(self, listener: BusListener) -> ChannelLink:
        return ShardLink(listener) if self._is_sharded else ChannelLink(listener)


def _when_answered(on_sent: Callable[[bytes], None], name: bytes, future: "asyncio.Future[Reply]") -> None:
    if not future.cancelled() and future.exception() is None:
        on_sent(name)


__all__ = ["ClusterSubscription"]
