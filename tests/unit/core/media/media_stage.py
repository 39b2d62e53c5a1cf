"""A desk on the hub in memory, and clients that take media."""

from gateway.core.connection import Connection
from gateway.core.media.desk import MediaDesk
from gateway.core.media.lane import MediaLane
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.media import MediaFlag, MediaFrame, MediaType, decode_media, encode_media
from gateway.settings import MediaSettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage


def encoded(
    kind: MediaType = MediaType.VIDEO,
    sequence: int = 0,
    flags: int = MediaFlag.KEY,
    source: str = "",
    size: int = 1_000,
) -> bytes:
    return encode_media(MediaFrame(kind, "s", sequence, 0, flags, bytes(size), source))


def sequences(link: FakeLink) -> list[int]:
    return [decode_media(frame).sequence for frame in link.media]


class MediaStage:
    """One session with its desk."""

    def __init__(self, it: Stage, **settings: float) -> None:
        self.it = it
        self.desk = MediaDesk(it.hub, MediaSettings(**settings), lambda: it.now[0])  # type: ignore[arg-type]
        it.hub.shared.equip = self.desk.equip

    async def connect(self, name: str, caps: str = "media", **how: bool) -> tuple[Connection, FakeLink]:
        connection, link = await self.it.connect(name, **how)
        self.desk.equip(connection, Capabilities.parse(caps))
        return connection, link

    def deliver(self, *frames: bytes) -> None:
        for frame in frames:
            self.desk.deliver(self.it.log.ref.key, frame)

    def pass_time(self, seconds: float) -> None:
        """So long, with a look a tenth of a second."""
        for _ in range(round(seconds * 10)):
            self.it.now[0] += 0.1
            self.desk.turn()


def lane_of(connection: Connection) -> MediaLane:
    assert connection.media is not None
    return connection.media


def answer_pings(connection: Connection, link: FakeLink, desk: MediaDesk) -> None:
    """As any WebSocket does by itself."""
    while link.pings:
        desk.on_pong(connection, link.pings.pop(0))


__all__ = ["MediaStage", "answer_pings", "encoded", "lane_of", "sequences"]
