"""What gateways tell each other of a client's connections: cut a run, pause, resume; and the answer that it is done.

Called from the bus: must not block nor raise. Asked by control, which waits for the answers for a bounded time.
"""

import asyncio
import random
from collections.abc import Collection, Iterator
from typing import Final

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.ids import ClientId, GatewayId, RunId, SessionRef
from gateway.ports import Bus, Seen

ANSWER_SECONDS: Final = 1.0
"""A gateway that has not answered by then is dead or cut off; its sockets get nothing from the bus either."""


class ClientNotices:
    """One per gateway."""

    def __init__(self, hub: Hub, bus: Bus, gateway: GatewayId, rng: random.Random) -> None:
        self._hub = hub
        self._bus = bus
        self._gateway = gateway
        self._rng = rng
        self._waiting: dict[bytes, asyncio.Future[None]] = {}

    # ---- asking ------------------------------------------------------------------------------------------------

    def cut(self, session: SessionRef, client: ClientId, run: RunId, seen: Seen | None) -> None:
        """Connections here: from now on none of the run's text is written to them."""
        for connection in self._connections(session.key, client):
            _cut(connection, run, seen)

    def control(self, session: SessionRef, client: ClientId, what: str) -> int:
        """Pause or resume connections here. Returns how many there are."""
        connections = list(self._connections(session.key, client))
        for connection in connections:
            _steer(connection, what)
        return len(connections)

    async def cut_elsewhere(
        self, gateways: Collection[GatewayId], session: SessionRef, client: ClientId, run: RunId, seen: Seen | None
    ) -> bool:
        """Returns when they all have done so, or after a second: then False."""
        seq, at = (b"", b"") if seen is None else (b"%d" % seen.seq, b"%d" % seen.at)
        return await self._ask(gateways, BusKind.CUT, session.key, client.encode(), run.encode(), seq, at)

    async def control_elsewhere(
        self, gateways: Collection[GatewayId], session: SessionRef, client: ClientId, what: str
    ) -> bool:
        return await self._ask(gateways, BusKind.CONTROL, session.key, client.encode(), what.encode())

    async def _ask(self, gateways: Collection[GatewayId], kind: BusKind, *fields: bytes) -> bool:
        others = [gateway for gateway in gateways if gateway != self._gateway]
        if not others:
            return True
        loop = asyncio.get_running_loop()
        nonces = []
        for gateway in others:
            nonce = b"%024x" % self._rng.getrandbits(96)
            self._waiting[nonce] = loop.create_future()
            nonces.append(nonce)
            self._bus.publish(gateway, encode_fields(kind, *fields, self._gateway.encode(), nonce))
        try:
            _, late = await asyncio.wait([self._waiting[nonce] for nonce in nonces], timeout=ANSWER_SECONDS)
        finally:
            for nonce in nonces:
                self._waiting.pop(nonce).cancel()
        return not late

    # ---- asked -------------------------------------------------------------------------------------------------

    def on_cut(self, fields: list[bytes]) -> None:
        """Raises ValueError, IndexError when the notice is malformed."""
        key, client, run, seq, at, asker, nonce = fields[:7]
        seen = Seen(int(seq), int(at)) if seq else None
        for connection in self._connections(key, ClientId(client.decode())):
            _cut(connection, RunId(run.decode()), seen)
        self._answer(asker, nonce)

    def on_control(self, fields: list[bytes]) -> None:
        key, client, what, asker, nonce = fields[:5]
        for connection in self._connections(key, ClientId(client.decode())):
            _steer(connection, what.decode())
        self._answer(asker, nonce)

    def on_done(self, fields: list[bytes]) -> None:
        waiting = self._waiting.get(fields[0])
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def on_ask_open(self, fields: list[bytes]) -> None:
        """To every connection of the session, ahead of its backlog. One that does not read finds it in the log."""
        session = self._hub.session(fields[0])
        max_bytes = self._hub.shared.limits.unsent_bytes
        for connection in session.connections if session is not None else ():
            if connection.generation and connection.unsent_bytes <= max_bytes:
                connection.tell_ask(fields[1])

    def _answer(self, asker: bytes, nonce: bytes) -> None:
        if nonce:
            self._bus.publish(GatewayId(asker.decode()), encode_fields(BusKind.DONE, nonce))

    def _connections(self, key: bytes, client: ClientId) -> Iterator[Connection]:
        session = self._hub.session(key)
        if session is not None:
            yield from [c for c in session.connections if c.client == client and not c.is_ending]


def _cut(connection: Connection, run: RunId, seen: Seen | None) -> None:
    connection.cut(run, text_until=0 if seen is None else seen.at)


def _steer(connection: Connection, what: str) -> None:
    if what == "pause":
        connection.pause()
    elif what == "resume":
        connection.go_on()


__all__ = ["ANSWER_SECONDS", "ClientNotices"]
