"""One open channel of a session: its task that reads, how it began, how it ended."""

import asyncio
from collections.abc import Callable
from typing import Any

from relayrouter.channel import Channel, Circumstances
from relayrouter.endings import Ending, broken, unreadable
from relayrouter.errors import ProtocolError
from relayrouter.handover import Handover
from relayrouter.messages import Frame
from relayrouter.place import Lane
from relayrouter.poll import PollChannel
from relayrouter.receiver import Receiver
from relayrouter.sse import SseChannel
from relayrouter.states import ChannelKind
from relayrouter.websocket import WebSocketChannel

_TYPES: dict[ChannelKind, type[Channel]] = {
    ChannelKind.WEBSOCKET: WebSocketChannel,
    ChannelKind.SSE: SseChannel,
    ChannelKind.POLL: PollChannel,
}

OnControl = Callable[["Running", Frame], None]


class Running:
    """`open` once; `ended` is set when nothing comes any more. Only `retire` and `dispose` end it from our side."""

    def __init__(
        self,
        kind: ChannelKind,
        url: str,
        about: Circumstances,
        query: dict[str, str],
        lane: Lane,
        on_disposed: "Callable[[Running], None]",
    ) -> None:
        self.kind = kind
        self.url = url
        self.lane = lane
        self.channel = _TYPES[kind](about, query)
        self.connection: str | None = None
        self.welcome: dict[str, Any] = {}
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.live_at: float | None = None
        self.has_heard = False
        """Something beside the welcome came."""
        self.was_retired = False
        self._reading: asyncio.Task[None] | None = None
        self._clock = about.clock
        self._on_disposed = on_disposed
        self._start = about.start

    async def open(self, receiver: Receiver, handover: Handover, on_control: OnControl) -> Ending | None:
        """None: welcomed. The caller bounds the time."""
        ending = await self.channel.open()
        if ending is not None:
            self._end(ending)
            return ending
        self._reading = self._start("reader", self._read(receiver, handover, on_control))
        either: list[asyncio.Future[Any]] = [self.welcomed, self.ended]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.welcomed.done():
            return None
        ending = self.ended.result()
        if ending.code is None and ending.error is None:
            return broken(f"no welcome: {ending.reason}", is_transport=True)
        return ending

    def note_welcome(self, frame: Frame) -> None:
        """Each poll has one, a socket the first frame only."""
        self.welcome = frame.payload
        connection, heartbeat = frame.payload.get("connection"), frame.payload.get("heartbeat")
        self.connection = connection if isinstance(connection, str) else None
        self.channel.welcomed(float(heartbeat) if isinstance(heartbeat, int | float) and heartbeat > 0 else 20.0)
        if not self.welcomed.done():
            self.live_at = self._clock()
            self.welcomed.set_result(None)

    def end(self, ending: Ending) -> None:
        """From our side, or because its place is of no use any more."""
        self._end(ending)

    def dispose(self) -> None:
        """At once; whatever it still brings is ignored."""
        if self._reading is not None:
            self._reading.cancel()
        self._end(broken("left"))
        self.channel.detach()
        self._on_disposed(self)

    async def close(self) -> None:
        """In order; its reader was stopped."""
        self._end(broken("closed"))
        await self.channel.close()
        self.dispose()

    async def _read(self, receiver: Receiver, handover: Handover, on_control: OnControl) -> None:
        liveness = self.channel.liveness
        try:
            while not self.ended.done():
                got = await self.channel.receive()
                if isinstance(got, Ending):
                    self._end(got)
                    return
                if got.kind != "welcome" or not got.is_control:
                    self.has_heard = True
                if receiver.take(self.lane, got):
                    on_control(self, got)
                liveness.is_streaming = receiver.is_streaming
                if handover.is_full:
                    liveness.is_stalled = True
                    await handover.room()
                    liveness.is_stalled = False
        except ProtocolError as exc:
            self._end(unreadable(exc))

    def _end(self, ending: Ending) -> None:
        if not self.ended.done():
            self.ended.set_result(ending)
        self.channel.liveness.is_stalled = False


__all__ = ["OnControl", "Running"]
