"""Who has which slot, as the cluster's servers say it: asked when it starts, now and then, and when one says MOVED.

One for all connections of a gateway. Makes a connection for each question, since questions are rare, and asks several
servers at once: one that is cut off from the others still says what was. The owner of tasks starts `run`.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.handshake import open_socket
from gateway.adapters.resp.replies import ReplyError
from gateway.adapters.resp.slots import SLOTS, Spot, View, parse_redirect, parse_view
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings
from gateway.settings.redis_url import shown_place

log = structlog.get_logger()

AT_ONCE: Final = 3
"""Servers asked together: the one with the highest epoch is right."""
TROUBLE_SECONDS: Final = 0.5
"""From one question to the next while a primary does not answer."""
LEAST_SECONDS: Final = 0.1
"""However many say MOVED."""
BACK_AFTER: Final = 3
"""Questions in turn that only an older view answers: then it is the truth (the cluster was made anew)."""
_ASKED: Final = pack((b"CLUSTER", b"SLOTS")) + pack((b"CLUSTER", b"INFO"))


@dataclass(frozen=True, slots=True)
class _Way:
    """What is needed to ask, as the files hold it now."""

    address: Address
    tls: ssl.SSLContext | None


class ClusterMap:
    """`owner` at any time; `on_change` hears that servers came or went."""

    def __init__(self, address: Address, settings: RedisSettings, *, rng: random.Random) -> None:
        self._address = address
        self._settings = settings
        self._rng = rng
        self._owners: list[Spot | None] = [None] * SLOTS
        self._replicas: frozenset[Spot] = frozenset()
        self._rank = (False, -1)
        self._older = 0
        self._hurry = asyncio.Event()
        self._known = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._told_reason = ""
        self.primaries: frozenset[Spot] = frozenset()
        self.trouble: set[object] = set()
        """Connections that should be up and are not: while there are any it is asked often."""

    def owner(self, slot: int) -> Spot | None:
        """None: nothing is known of it, or nobody has it."""
        return self._owners[slot]

    async def known(self) -> None:
        """Returns when it has been told for the first time."""
        await self._known.wait()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Called after each look at the cluster; must not block."""
        self._listeners.append(listener)

    def hurry(self) -> None:
        """Something does not fit: look soon."""
        self._hurry.set()

    def heard(self, error: ReplyError, asked: Spot) -> None:
        """An error reply by this server. MOVED is believed at once, for its slot."""
        if error.code == "MOVED":
            found = parse_redirect(error.reason, asked)
            if found is not None:
                slot, spot = found
                self._owners[slot] = spot
                if spot not in self.primaries:
                    self.primaries |= {spot}
                    self._tell()
            self.hurry()
        elif error.code in ("CLUSTERDOWN", "READONLY", "MASTERDOWN"):
            self.hurry()

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.refresh()
            await asyncio.sleep(LEAST_SECONDS)
            seconds = TROUBLE_SECONDS if self.trouble or not self.primaries else self._settings.cluster_refresh_seconds
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._hurry.wait()
            self._hurry.clear()

    async def refresh(self) -> None:
        """One look. Never raises: what nobody says stays as it is known."""
        try:
            async with asyncio.timeout(self._settings.connect_timeout_seconds):
                address, tls = self._address, None
                if address.needs_files:
                    address, tls = await asyncio.to_thread(address.read_files)
        except OSError as exc:  # TimeoutError is an OSError
            self._tell_failure(str(exc) or type(exc).__name__)
            return
        way = _Way(address, tls)
        known = list(self.primaries | self._replicas)
        self._rng.shuffle(known)
        spots = list(dict.fromkeys([*known, *self._address.seeds]))
        reasons: dict[str, str] = {}
        for first in range(0, len(spots), AT_ONCE):
            views = await self._ask_some(spots[first : first + AT_ONCE], way, reasons)
            if views:
                self._judge(max(views, key=lambda view: view.rank))
                return
        self._tell_failure("; ".join(f"{place}: {reason}" for place, reason in sorted(reasons.items())[:AT_ONCE]))

    async def _ask_some(self, spots: Sequence[Spot], way: _Way, reasons: dict[str, str]) -> list[View]:
        answers = await asyncio.gather(*(self._ask(spot, way) for spot in spots), return_exceptions=True)
        views = []
        for spot, answer in zip(spots, answers, strict=True):
            if isinstance(answer, View):
                views.append(answer)
            elif isinstance(answer, (OSError, StoreUnavailable)):
                reasons[shown_place(*spot)] = str(answer) or "no answer in time"
            else:
                raise answer
        return views

    async def _ask(self, spot: Spot, way: _Way) -> View:
        loop = asyncio.get_running_loop()
        address = way.address.at(*spot)
        async with asyncio.timeout(self._settings.cluster_timeout_seconds):
            link = await open_socket(address, way.tls, Connection)
            try:
                packed = []
                if address.password:
                    names = (address.username,) if address.username else ()
                    packed.append(pack((b"AUTH", *names, address.password)))
                futures = [loop.create_future() for _ in range(len(packed) + 2)]
                link.write(b"".join([*packed, _ASKED]), futures, loop.time() + 60)
                *_, slots, info = [await future for future in futures]
                return parse_view(slots, info, spot)
            finally:
                link.abort("asked")

    def _judge(self, view: View) -> None:
        if view.rank < self._rank and self._older < BACK_AFTER:
            self._older += 1
            return
        self._older = 0
        self._told_reason = ""
        self._rank = view.rank
        self._replicas = view.replicas
        primaries = frozenset(owner for owner in view.owners if owner is not None)
        if primaries != self.primaries:
            log.info("redis_cluster", primaries=[shown_place(*spot) for spot in sorted(primaries)], epoch=view.epoch)
        self._owners = list(view.owners)
        self.primaries = primaries
        self._known.set()
        self._tell()

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _tell_failure(self, reason: str) -> None:
        """Once for each new reason, not for each attempt."""
        if reason != self._told_reason:
            self._told_reason = reason
            log.warning("redis_cluster_unknown", address=str(self._address), reason=reason)


__all__ = ["ClusterMap"]
