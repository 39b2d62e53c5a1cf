"""One WebSocket of a reader: frames in, acks and pings out, and the judgement that it is dead.

Needs no task of its own: the ack and the ping that are due are sent while the next frame is awaited.
"""

from collections.abc import Callable
from contextlib import suppress

import aiohttp

from gateway.adapters.client.endings import Ending
from gateway.adapters.client.frames import BadFrame, Frame, decode_frame
from gateway.adapters.client.settings import ReaderSettings
from gateway.domain.wire.close_codes import CloseCode

_PING = '{"type":"control","payload":{"kind":"ping"}}'
_CLOSING = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
_LEAST_WAIT_SECONDS = 0.05
"""After a pause of our own the loop must have had its turn before silence is the server's."""


class Link:
    """Used by one reader at a time. `receive` ends with an Ending; after it only `close` may be called."""

    def __init__(
        self,
        ws: aiohttp.ClientWebSocketResponse,
        settings: ReaderSettings,
        clock: Callable[[], float],
        on_media: Callable[[bytes], None] = lambda _frame: None,
    ) -> None:
        self._ws = ws
        self._settings = settings
        self._clock = clock
        self._on_media = on_media
        self.opened_at = self._heard_at = clock()
        self.is_streaming = False
        """A run is open: silence is suspicious sooner."""
        self.is_welcome = False
        self.rtt_seconds: float | None = None
        self._asked_at: float | None = None
        self._last_asked_at = self.opened_at
        self._applied_seq = 0
        self._unacked_bytes = 0
        self._unacked_since = 0.0

    def note_applied(self, seq: int, size: int) -> None:
        """Message `seq` of `size` bytes was applied: it will be acknowledged soon."""
        if not self._unacked_bytes:
            self._unacked_since = self._clock()
        self._applied_seq = seq
        self._unacked_bytes += size

    def start_from(self, seq: int) -> None:
        """The server named a new position: what was applied before is not to be acknowledged on it."""
        self._applied_seq = seq
        self._unacked_bytes = 0

    async def receive(self) -> Frame | Ending:
        """The next frame that is not our pong. Safe to cancel between frames."""
        try:
            while True:
                await self._send_due()
                wait = max(self._next_deadline() - self._clock(), _LEAST_WAIT_SECONDS)
                try:
                    message = await self._ws.receive(wait)
                except TimeoutError:
                    if ending := self._silence():
                        return ending
                    continue
                if message.type in _CLOSING:
                    return _ending(message)
                received = await self._take(message)
                if received is not None:
                    return received
        except (aiohttp.ClientError, ConnectionError) as exc:
            return Ending(None, str(exc) or type(exc).__name__)
        except BadFrame as exc:
            await self.close(CloseCode.PROTOCOL_ERROR)
            return Ending(None, str(exc))

    async def send(self, text: str) -> None:
        with suppress(aiohttp.ClientError, ConnectionError):  # `receive` tells how it ended
            await self._ws.send_str(text)

    async def close(self, code: CloseCode = CloseCode.NORMAL) -> None:
        """Acknowledge what was applied and close; bounded by the socket's close time-out."""
        if not self._ws.closed:
            if self._unacked_bytes and code is CloseCode.NORMAL:
                await self._ack()
            with suppress(aiohttp.ClientError, ConnectionError):
                await self._ws.close(code=code)

    async def _take(self, message: aiohttp.WSMessage) -> Frame | None:
        self._heard_at = self._clock()
        if message.type is aiohttp.WSMsgType.PING:
            await self._ws.pong(message.data)
            return None
        if message.type is aiohttp.WSMsgType.BINARY:
            self._on_media(message.data)
            return None
        if message.type is not aiohttp.WSMsgType.TEXT:
            return None
        frame = decode_frame(message.data)
        if frame.is_control and frame.kind == "pong":
            if self._asked_at is not None:
                self.rtt_seconds = self._heard_at - self._asked_at
            self._asked_at = None
            return None
        return frame

    async def _send_due(self) -> None:
        now = self._clock()
        if self._unacked_bytes and now >= self._ack_deadline():
            await self._ack()
        if self.is_welcome and self._asked_at is None and now >= self._ping_deadline():
            self._asked_at = self._last_asked_at = now
            await self._ws.send_str(_PING)

    async def _ack(self) -> None:
        self._unacked_bytes = 0
        await self.send(f'{{"type":"control","payload":{{"kind":"ack","seq":{self._applied_seq}}}}}')

    def _silence(self) -> Ending | None:
        """Called when nothing came for a while."""
        now = self._clock()
        if not self.is_welcome:
            if now >= self.opened_at + self._settings.welcome_seconds:
                return Ending(None, f"no welcome within {self._settings.welcome_seconds:g} s")
        elif self._asked_at is not None and now >= self._answer_deadline():
            return Ending(None, f"no answer within {self._settings.answer_seconds:g} s")
        return None

    def _ack_deadline(self) -> float:
        if self._unacked_bytes >= self._settings.ack_bytes:
            return 0.0
        return self._unacked_since + self._settings.ack_seconds

    def _ping_deadline(self) -> float:
        quiet = self._settings.quiet_seconds if self.is_streaming else self._settings.idle_quiet_seconds
        deadline = self._heard_at + quiet
        if self._settings.rtt_seconds is not None:
            deadline = min(deadline, self._last_asked_at + self._settings.rtt_seconds)
        return deadline

    def _answer_deadline(self) -> float:
        """Any byte after the ping is life, though only the pong ends the question."""
        return max(self._heard_at, self._last_asked_at) + self._settings.answer_seconds

    def _next_deadline(self) -> float:
        if not self.is_welcome:
            return self.opened_at + self._settings.welcome_seconds
        deadline = self._answer_deadline() if self._asked_at is not None else self._ping_deadline()
        return min(deadline, self._ack_deadline()) if self._unacked_bytes else deadline


def _ending(message: aiohttp.WSMessage) -> Ending:
    """Only a close frame has a code; the library's own `close_code` also says 1000 for a link that broke."""
    if message.type is aiohttp.WSMsgType.CLOSE and message.data:
        return Ending(int(message.data), str(message.extra or ""))
    return Ending(None, "the connection broke")


__all__ = ["Link"]
