"""Control messages of the application: to all connections of a session at once, past the log (route table, control).

Best effort and unsequenced: who is not there does not get it. Must never put one between what has its order, nor wait
for a client.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.hub import Hub
from gateway.domain.measures import Measures
from gateway.domain.routing.table import Lane, Route
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import Bus, LogStore, StoreUnavailable


@dataclass(frozen=True, slots=True)
class Broadcast:
    """The sending side; one per gateway."""

    store: LogStore
    bus: Bus
    wall_clock: Callable[[], float]
    rng: random.Random

    async def gateways(self, session: SessionRef, route: Route) -> list[GatewayId]:
        """Where clients of the session are. Tried as often as the route says. RelayError UNAVAILABLE."""
        for attempt in range(1, route.retry.attempts + 1):
            try:
                info = await self.store.info(session)
            except StoreUnavailable:
                if attempt < route.retry.attempts:
                    await asyncio.sleep(route.retry.pause_seconds(attempt, self.rng.uniform(0, 1)))
            else:
                return [] if info is None else list(dict.fromkeys(known.gateway for known in info.routes))
        raise RelayError(ErrorCode.UNAVAILABLE, "Redis did not answer", {"outcome": "not_written"})

    def send(self, session: SessionRef, route: Route, payload: bytes, gateways: list[GatewayId]) -> None:
        """`payload`: a JSON object in one line."""
        deadline = b""
        if route.deadline_seconds is not None:
            deadline = b"%d" % int((self.wall_clock() + route.deadline_seconds) * 1000)
        notice = encode_fields(BusKind.APP_CONTROL, session.key, route.lane.value.encode(), deadline, payload)
        for gateway in gateways:
            self.bus.publish(gateway, notice)


class ControlListener:
    """The receiving side. Called from the bus: must not block nor raise but for what is malformed."""

    def __init__(self, hub: Hub, measures: Measures) -> None:
        self._hub = hub
        self._measures = measures

    def on_control(self, fields: list[bytes]) -> None:
        """Lanes above the text's go out at once; those below only to who is up to date. ValueError: malformed."""
        key, lane, deadline, payload = fields[:4]
        session = self._hub.session(key)
        if session is None:
            return
        now_ms = int(self._hub.shared.wall_clock() * 1000)
        connections = [connection for connection in session.connections if connection.generation]
        outcomes = self._measures.control_pushes
        if deadline and now_ms >= int(deadline):
            outcomes["late"] += len(connections)
            return
        is_ahead = Lane(lane.decode()).is_ahead_of_text
        head = encode_json({"type": "control", "timestamp": now_ms, "session_id": session.ref.session})
        frame = encode_text(head[:-1] + b',"payload":' + payload + b"}")
        max_bytes = self._hub.shared.limits.unsent_bytes
        for connection in connections:
            if not connection.is_open:
                continue
            if connection.unsent_bytes > max_bytes:
                outcomes["full"] += 1
            elif not is_ahead and not connection.is_current:
                outcomes["behind"] += 1
            else:
                outcomes["written"] += 1
                connection.write(frame)


__all__ = ["Broadcast", "ControlListener"]
