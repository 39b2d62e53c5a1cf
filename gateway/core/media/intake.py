"""Takes media in, from publishers and from clients, and tells it to the gateways whose clients take it (B10).

Straight over the bus: it is in no log, has no seq and is not repeated. Must never hold frames nor wait for a reader.
Called by the HTTP endpoint and by visits.
"""

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gateway.core.media.audiences import Audiences
from gateway.core.media.desk import MediaDesk
from gateway.core.rates import Rates
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.domain.wire.media import InvalidMedia, MediaFrame, decode_media, encode_media, read_head
from gateway.ports import Clock, MediaBus
from gateway.settings import MediaSettings

if TYPE_CHECKING:
    from gateway.core.connection import Connection

LEAST_COST_BYTES: Final = 2_048
"""What a frame counts for at least: tiny ones cost work, too."""


class Taken(StrEnum):
    """What became of a frame. Whether a client gets it is decided where the client is."""

    SENT = "sent"
    NOBODY = "nobody"
    """No client of the session takes it."""
    OVER_RATE = "over_rate"
    UNAVAILABLE = "unavailable"
    """Redis does not say who is there, or takes no more."""


class MediaIntake:
    """One per gateway."""

    def __init__(
        self,
        audiences: Audiences,
        desk: MediaDesk,
        bus: MediaBus,
        settings: MediaSettings,
        measures: Measures,
        *,
        gateway: GatewayId,
        clock: Clock,
    ) -> None:
        self._audiences = audiences
        self._desk = desk
        self._bus = bus
        self._measures = measures
        self._gateway = gateway
        self._rates = Rates(settings.bytes_per_second, settings.burst_bytes, clock)
        self.frame_bytes = settings.frame_bytes

    async def take(self, ref: SessionRef, frame: MediaFrame) -> Taken:
        """Raises RelayError TOO_LARGE, GONE."""
        data = encode_media(frame)
        if len(data) > self.frame_bytes:
            raise RelayError(
                ErrorCode.TOO_LARGE,
                f"a media frame has at most {self.frame_bytes} bytes with its header; send it in slices",
                {"limit_bytes": self.frame_bytes},
            )
        taken = await self._send(ref, frame, data)
        self._measures.media_received[taken] += 1
        return taken

    async def by_socket(self, connection: "Connection", data: bytes) -> None:
        """A client's frame, for the others of its session. Raises RelayError: said to the client."""
        if connection.media is None:
            raise RelayError(ErrorCode.UNSUPPORTED, "connect with `caps=audio` or `caps=video` to send media")
        if connection.is_previous or connection.is_fenced:
            return  # the newer connection sends; of this one it is too late
        try:
            frame = decode_media(data)
        except InvalidMedia as exc:
            raise RelayError(ErrorCode.BAD_REQUEST, str(exc)) from None
        if frame.source:
            raise RelayError(ErrorCode.BAD_REQUEST, "the gateway says who sends: leave the source empty")
        if not connection.capabilities.takes(frame.type):
            raise RelayError(ErrorCode.UNSUPPORTED, "this connection did not ask for media of this type")
        taken = await self.take(connection.session.ref, replace(frame, source=connection.client))
        if taken in (Taken.OVER_RATE, Taken.UNAVAILABLE):
            self._desk.upload_dropped(connection)

    def on_pong(self, connection: "Connection", payload: bytes) -> None:
        self._desk.on_pong(connection, payload)

    async def _send(self, ref: SessionRef, frame: MediaFrame, data: bytes) -> Taken:
        if self._rates.take(ref.key, max(len(data), LEAST_COST_BYTES)):
            return Taken.OVER_RATE
        gateways = await self._audiences.gateways(ref, frame.type, frame.source)
        if self._desk.has_listeners(ref, read_head(data)):
            gateways = (gateways or set()) | {self._gateway}  # whoever is here is known at once
        if gateways is None:
            return Taken.UNAVAILABLE
        if not gateways:
            return Taken.NOBODY
        message = encode_fields(BusKind.MEDIA, ref.key, data)
        is_sent = False
        for gateway in gateways:
            if gateway == self._gateway:
                self._desk.deliver(ref.key, data)
                is_sent = True
            elif self._bus.publish(gateway, message):
                is_sent = True
        return Taken.SENT if is_sent else Taken.UNAVAILABLE


__all__ = ["MediaIntake", "Taken"]
