"""Listens at one sentinel, so that a fail-over is followed before it is felt.

`+switch-master` comes from every sentinel when a fail-over is over; `+promoted-slave` comes a second earlier, and only
from the one that leads it: until then a primary that is to be replaced, but lives, takes writes that will be lost.
Hints only: what is missed is made up for by health pings and READONLY. The owner of tasks starts `run`.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from gateway.adapters.resp.address import Address, Sentinels
from gateway.adapters.resp.backoff import Backoff
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.sentinels import open_sentinel
from gateway.adapters.resp.subscription import ChannelLink, watch_link
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings
from gateway.settings.redis_url import shown_place

log = structlog.get_logger()

_SUBSCRIBES: Final = (pack((b"SUBSCRIBE", b"+promoted-slave")), pack((b"SUBSCRIBE", b"+switch-master")))


def parse_promotion(message: bytes, service: str) -> tuple[str, int] | None:
    """(host, port) of the new primary; None when the message is about something else. Pure.

    +switch-master:  <service> <old host> <old port> <new host> <new port>
    +promoted-slave: slave <name> <new host> <new port> @ <service> <old host> <old port>
    """
    match message.decode("utf-8", "replace").split(" "):
        case [name, _, _, host, port] if name == service and port.isdigit():
            return host, int(port)
        case ["slave", _, host, port, "@", name, _, _] if name == service and port.isdigit():
            return host, int(port)
    return None


class SentinelWatch:
    """When its sentinel is gone it goes to the next one."""

    def __init__(
        self, address: Address, settings: RedisSettings, *, rng: random.Random, on_primary: Callable[[str, int], None]
    ) -> None:
        """`on_primary`: (host, port) that the sentinels have promoted just now."""
        self._address = address
        self._settings = settings
        self._on_primary = on_primary
        self._backoff = Backoff(settings.backoff_min_ms, settings.backoff_max_ms, rng)
        self._next = 0
        self._told_reason = ""

    async def run(self) -> None:
        """For ever. Only for an address with sentinels."""
        who = self._address.sentinels
        if who is None:
            raise ValueError(f"{self._address} has no sentinels")
        while True:
            await self._listen_once(who)
            self._next = (self._next + 1) % len(who.places)
            await asyncio.sleep(self._backoff.delay_seconds())

    async def _listen_once(self, who: Sentinels) -> None:
        place = who.places[self._next]
        timeout = self._settings.sentinel_timeout_seconds
        link: ChannelLink | None = None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._settings.connect_timeout_seconds):
                address, tls = self._address, None
                if address.needs_files:
                    address, tls = await asyncio.to_thread(address.read_files)
            link = await open_sentinel(address, place, tls, lambda: ChannelLink(self), timeout)
            async with asyncio.timeout(timeout):
                for packed in _SUBSCRIBES:
                    await link.ask(packed, loop.time() + 2 * timeout)
            self._told_reason = ""
            since = loop.time()
            reason = await watch_link(link, self._settings.ping_interval_seconds)
            log.warning("sentinel_lost", address=shown_place(*place), reason=reason)
            if loop.time() - since > self._settings.backoff_max_ms / 1000:
                self._backoff.reset()
        except (OSError, StoreUnavailable) as exc:  # TimeoutError is an OSError
            self._tell_failure(place, type(exc).__name__ if isinstance(exc, TimeoutError) else str(exc))
        finally:
            if link is not None:
                link.abort("closed")

    def _tell_failure(self, place: tuple[str, int], reason: str) -> None:
        """Once for each new reason, not for each attempt."""
        if reason != self._told_reason:
            self._told_reason = reason
            log.warning("sentinel_connect_failed", address=shown_place(*place), reason=reason)

    # ---- the link's listener ----

    def on_subscribed(self) -> None:
        """Nothing: what was missed before is found by health pings."""

    def on_down(self, _reason: str) -> None:
        """Nothing, likewise."""

    def on_messages(self, messages: Sequence[bytes]) -> None:
        who = self._address.sentinels
        for message in messages:
            found = None if who is None else parse_promotion(message, who.service)
            if found is not None:
                log.warning("redis_primary_moved", address=shown_place(*found))
                self._on_primary(*found)


__all__ = ["SentinelWatch", "parse_promotion"]
