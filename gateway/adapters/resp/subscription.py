"""The gateway's own channel: subscribe, deliver what each read brought, notice a dead link, subscribe again.

Owns one connection of its own. Must never wait for a listener. Implements ports.Bus; the owner of tasks starts `run`.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

import structlog
from hiredis import ProtocolError

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.backoff import Backoff
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.connection import NOTHING, Connection
from gateway.adapters.resp.endpoint import Router
from gateway.adapters.resp.handshake import greet, open_socket
from gateway.adapters.resp.health import is_answered
from gateway.adapters.resp.primary import Primary
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.ids import GatewayId
from gateway.ports import BusListener, StoreUnavailable
from gateway.settings.redis import RedisSettings

log = structlog.get_logger()

_PING: Final = pack((b"PING",))


def channel_of(gateway: GatewayId) -> bytes:
    """The one place where Python spells the channel's name (redis.md)."""
    return b"rr:ch:" + gateway.encode()


class ChannelLink(Connection):
    """A RESP2 connection with one subscription: messages go to the listener, all else to the waiters in order."""

    VERB = b"SUBSCRIBE"
    KIND = b"message"

    def __init__(self, listener: BusListener) -> None:
        super().__init__()
        self._listener = listener
        self._listener_messages = listener.on_messages
        self.is_subscribed = False

    @classmethod
    def subscribe(cls, channel: bytes) -> bytes:
        """The command, packed."""
        return pack((cls.VERB, channel))

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        messages = []
        try:
            self._reader.feed(data)
            gets, kind = self._gets, self.KIND
            while (reply := gets()) is not NOTHING:
                if reply.__class__ is list and reply[0] == kind:
                    messages.append(reply[2])
                else:
                    self._take_reply(reply)
        except ProtocolError:
            self.abort("not the Redis protocol")
        if messages:
            self._listener_messages(messages)

    def _take_reply(self, reply: object) -> None:
        # Here and not where SUBSCRIBE is awaited: the same read may hold the first messages.
        if isinstance(reply, list) and reply[0] == self.VERB.lower() and not self.ended.done():
            self.is_subscribed = True
            self._listener.on_subscribed()
        self.resolve(reply)


class Subscription:
    """`on_down` follows each `on_subscribed` exactly once; failed attempts in between are not told."""

    def __init__(
        self,
        address: Address,
        client: Router,
        settings: RedisSettings,
        *,
        rng: random.Random,
        measures: Measures,
        way: Primary | None = None,
    ) -> None:
        """`client` carries what is published, in order with the appends. `way`: not to a primary, but there."""
        self._primary = Primary(address, settings) if way is None else way
        self._client = client
        self._settings = settings
        self._measures = measures
        self._backoff = Backoff(settings.backoff_min_ms, settings.backoff_max_ms, rng)
        self._link: ChannelLink | None = None
        self._was_subscribed = False
        self._told_reason = ""

    def _make_link(self, listener: BusListener) -> ChannelLink:
        return ChannelLink(listener)

    def publish(self, gateway: GatewayId, message: bytes) -> None:
        """Fire and forget through the append connection, after what was sent there before."""
        self._client.publish(channel_of(gateway), message)

    def beat(self, gateway: GatewayId, on_sent: Callable[[bytes], None]) -> None:
        """The one connection has no name, and counts also while it is not up."""
        self.publish(gateway, encode_fields(BusKind.BEACON, b""))
        on_sent(b"")

    def reset(self, reason: str) -> None:
        """Drop the current link, if there is one; `run` makes a new one."""
        if self._link is not None:
            self._link.abort(reason)

    def moved(self, host: str, port: int) -> None:
        """The sentinels have made this server the primary: listen there."""
        if self._primary.moved(host, port):
            self._backoff.reset()
            self.reset("another server is the primary now")

    async def run(self, channel: GatewayId, listener: BusListener) -> None:
        """Subscribe, deliver, subscribe again with full jitter, for ever. Returns only by cancellation."""
        while True:
            await self._live_once(channel, listener)
            await self._primary.pause(self._backoff.delay_seconds())

    async def _live_once(self, channel: GatewayId, listener: BusListener) -> None:
        loop = asyncio.get_running_loop()
        reason = "closed"
        try:
            place = await self._primary.locate(self._settings.connect_timeout_seconds)
            async with asyncio.timeout(self._settings.connect_timeout_seconds):
                self._link = await open_socket(place.address, place.tls, lambda: self._make_link(listener))
                link = self._link
                deadline = loop.time() + self._settings.connect_timeout_seconds
                server = await greet(link, place.address, f"{channel}:bus", (), deadline)
                if self._primary.has_sentinels and not server.is_primary:
                    raise StoreUnavailable("it is a replica", outcome_unknown=False)
                await link.ask(link.subscribe(channel_of(channel)), deadline)
            since = loop.time()
            self._note_subscribed(channel)
            reason = await watch_link(link, self._settings.ping_interval_seconds)
            log.warning("bus_lost", address=str(self._primary), reason=reason)
            if loop.time() - since > self._settings.backoff_max_ms / 1000:
                self._backoff.reset()
        except (OSError, StoreUnavailable) as exc:  # TimeoutError is an OSError
            reason = self._primary.why(exc)
            if reason != self._told_reason:
                self._told_reason = reason
                log.warning("bus_connect_failed", address=str(self._primary), reason=reason)
        finally:
            ended, self._link = self._link, None
            if ended is not None:
                ended.abort("closed")
                if ended.is_subscribed:
                    listener.on_down(reason)

    def _note_subscribed(self, channel: GatewayId) -> None:
        if self._was_subscribed:
            self._measures.bus_reconnects += 1
        self._was_subscribed = True
        self._told_reason = ""
        log.info("bus_subscribed", address=str(self._primary), channel=channel)


async def watch_link(link: ChannelLink, interval_seconds: float) -> str:
    """Returns why the link is no more. Asks only when nothing came in for a whole interval."""
    while not link.ended.done():
        reads = link.reads
        await asyncio.wait((link.ended,), timeout=interval_seconds)
        if link.ended.done() or link.reads != reads:
            continue
        pong = link.ask(_PING, asyncio.get_running_loop().time() + 60 * interval_seconds)
        if not await is_answered(link, pong, interval_seconds):
            link.abort("health ping was not answered")
            return await link.ended
    return link.ended.result()


__all__ = ["ChannelLink", "Subscription", "channel_of", "watch_link"]
