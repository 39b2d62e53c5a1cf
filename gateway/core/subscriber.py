"""What arrives on the gateway's own channel: messages go to the hub, notices to the connection that they name.

Owns the beacon that proves the subscription alive, and the comparisons while it is not (R01, R02, R17). Never blocks
and never raises into the reading protocol. Called by the bus adapter.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol
from urllib.parse import unquote

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.local_session import LocalSession
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind, decode_fields, decode_heads
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import ConnectionId, GatewayId, Tenant
from gateway.ports import Bus
from gateway.settings import BusSettings

log = structlog.get_logger()

COMPARE_SECONDS = 1.0
"""Between two comparisons of all sessions while the subscription is down: the log replaces the bus."""
_MESSAGE: Final = BusKind.MESSAGE.value


class NoticeHandlers(Protocol):
    """What notices lead to beyond the connection itself."""

    def check_later(self, connection: Connection) -> None:
        """A newer connection wants to replace it: look whether it did."""
        ...

    def revocations_changed(self, tenant: Tenant) -> None: ...


class Subscriber:
    """Implements ports.BusListener. `watch` runs for ever."""

    def __init__(
        self,
        hub: Hub,
        bus: Bus,
        gateway: GatewayId,
        settings: BusSettings,
        measures: Measures,
        owner: TaskOwner,
        handlers: NoticeHandlers,
        on_confirmed: Callable[[], None] = lambda: None,
    ) -> None:
        self._hub = hub
        self._bus = bus
        self._gateway = gateway
        self._settings = settings
        self._measures = measures
        self._owner = owner
        self._handlers = handlers
        self._on_confirmed = on_confirmed
        self.confirmed = asyncio.Event()
        """Set by the first confirmed SUBSCRIBE: no claim before it."""
        self.is_up = False
        """SUBSCRIBE is confirmed, and beacons come through."""
        self._subscriptions = 0
        self._beats = 0
        self._sent: dict[bytes, int] = {}
        """Of each connection that publishes (ports.Bus.beat) the last beacon that went out through it."""
        self._heard: dict[bytes, int] = {}
        self._subscribed_beat = 0
        self._is_comparing = False
        self._changed = asyncio.Event()
        self._notices: dict[bytes, Callable[[bytes], None]] = {
            BusKind.HEADS.value: self._on_heads,
            BusKind.BEACON.value: self._on_beacon,
            BusKind.SUPERSEDED.value: lambda message: self._tell(message, Connection.superseded),
            BusKind.REPLACING.value: lambda message: self._tell(message, self._replacing),
            BusKind.MOVED.value: lambda message: self._tell(message, Connection.moved),
            BusKind.RESTORED.value: self._on_restored,
            BusKind.DELETED.value: self._on_deleted,
            BusKind.REVOKED.value: self._on_revoked,
        }

    def listen(self, kind: BusKind, handle: Callable[[list[bytes]], None]) -> None:
        """Notices of this kind go to `handle`, as fields. It must not block; ValueError or IndexError: malformed."""
        self._notices[kind.value] = lambda message: handle(decode_fields(message))

    def listen_raw(self, kind: BusKind, handle: Callable[[bytes], None]) -> None:
        """The same for notices that are not all fields: `handle` gets the message as it came."""
        self._notices[kind.value] = handle

    # ---- the listener ----------------------------------------------------------------------------------------

    def on_subscribed(self) -> None:
        self.is_up = True
        self._subscriptions += 1
        self._sent.clear()
        self._heard.clear()
        self._subscribed_beat = self._beats
        if not self.confirmed.is_set():
            self.confirmed.set()
            self._on_confirmed()
        self._start_comparing()

    def on_messages(self, messages: list[bytes]) -> None:
        on_message = self._hub.on_message
        for message in messages:
            if message[:2] == _MESSAGE:
                on_message(message)
            else:
                self._on_notice(message)
        self._measures.bus_messages += len(messages)
        self._hub.flush()

    def on_down(self, reason: str) -> None:
        if self.is_up:
            self.is_up = False
            log.warning("bus_down", reason=reason)
        self._start_comparing()

    # ---- the beacon ------------------------------------------------------------------------------------------

    async def watch(self) -> None:
        """Beacons, for ever."""
        while True:
            await asyncio.sleep(self._settings.beacon_interval_seconds)
            self.beat()

    def beat(self) -> None:
        """Another beacon, unless too many were not heard: then the link is as good as dead, whatever TCP says."""
        if not self.is_up:
            return
        if any(self._unheard(path) >= self._settings.missed_beacons for path in self._sent):
            self._bus.reset("beacon")
            self.on_down("beacon")
            return
        self._beats += 1
        self._bus.beat(self._gateway, partial(self._beacon_sent, self._beats))

    def _unheard(self, path: bytes) -> int:
        return self._sent[path] - max(self._heard.get(path, 0), self._subscribed_beat)

    def _beacon_sent(self, beat: int, path: bytes) -> None:
        self._sent[path] = beat

    # ---- comparing with the log ------------------------------------------------------------------------------

    def _start_comparing(self) -> None:
        self._changed.set()
        if not self._is_comparing:
            self._is_comparing = True
            self._owner.start("compare", self._compare())

    async def _compare(self) -> None:
        """Again and again while the subscription is down; the last pass begins after it is confirmed, and is whole."""
        failed: dict[LocalSession, str] = {}
        whole_for = 0
        try:
            while True:
                subscriptions, is_last = self._subscriptions, self.is_up
                # In a cluster the sessions of one server may fail for long: the others have been compared.
                is_rest = bool(failed) and is_last and whole_for == subscriptions
                wanted = [s for s in failed if s.connections] if is_rest else list(self._hub.sessions.values())
                self._changed.clear()
                failed = await self._hub.compare(wanted, "subscribed" if is_last else "down")
                if failed:
                    log.info("compare_failed", sessions=len(failed), reason=next(iter(failed.values())))
                if is_last and subscriptions == self._subscriptions and self.is_up:
                    if not failed:
                        return
                    whole_for = subscriptions
                await self._next_turn()
        finally:
            self._is_comparing = False

    async def _next_turn(self) -> None:
        try:
            async with asyncio.timeout(COMPARE_SECONDS):
                await self._changed.wait()
        except TimeoutError:
            return  # it is time

    # ---- notices ---------------------------------------------------------------------------------------------

    def _on_notice(self, message: bytes) -> None:
        handle = self._notices.get(message[:2])
        if handle is None:
            self._measures.bus_ignored += 1  # a newer gateway's kind or version
            return
        try:
            handle(message)
        except (ValueError, IndexError):
            self._measures.bus_malformed += 1

    def _on_heads(self, message: bytes) -> None:
        self._hub.on_heads(decode_heads(message), "notice")

    def _on_beacon(self, message: bytes) -> None:
        self._heard[message[3:]] = self._beats

    def _tell(self, message: bytes, what: Callable[[Connection], None]) -> None:
        key, _, connection = decode_fields(message)[:3]
        found = self._hub.find(key, ConnectionId(connection.decode()))
        if found is not None:
            what(found)

    def _replacing(self, connection: Connection) -> None:
        connection.replacing()
        self._handlers.check_later(connection)

    def _on_restored(self, message: bytes) -> None:
        generation = int(decode_fields(message)[3])
        self._tell(message, lambda connection: connection.restored(generation))

    def _on_deleted(self, message: bytes) -> None:
        session = self._hub.session(decode_fields(message)[0])
        for connection in list(session.connections) if session is not None else ():
            connection.is_fenced = True
            connection.begin_close(CloseCode.NOT_FOUND, "deleted")

    def _on_revoked(self, message: bytes) -> None:
        self._handlers.revocations_changed(Tenant(unquote(decode_fields(message)[0].decode())))


__all__ = ["COMPARE_SECONDS", "NoticeHandlers", "Subscriber"]
