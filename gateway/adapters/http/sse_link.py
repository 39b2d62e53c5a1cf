"""One SSE response as the core sees it (ports.Link): frames in, events out, straight to the transport.

Never waits for the client, as little as a WebSocket's link does; the HTTP library only wrote the headers. Whether the
peer lives is what its kernel says: it acknowledges bytes, while an EventSource says nothing.
"""

import asyncio
import socket
import sys
from struct import Struct
from typing import Any, Final, Protocol

import msgspec

from gateway.adapters.http.kernel_rtt import kernel_rtt_seconds
from gateway.adapters.http.link import CLOSE_TIMEOUT_SECONDS, HIGH_MARK_BYTES, LOW_MARK_BYTES
from gateway.adapters.http.sse_events import EventStream, retry_after_close
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode
from gateway.domain.wire.envelopes import Envelope, Envelopes
from gateway.domain.wire.ws_frames import decode_texts

_TCP_INFO: Final = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_TCP_USER_TIMEOUT: Final = getattr(socket, "TCP_USER_TIMEOUT", None)
_last_ack_recv = Struct("=56xI").unpack
"""struct tcp_info: tcpi_last_ack_recv, ms since the peer's kernel last acknowledged anything."""
_TICK_MS: Final = 20
"""The kernel counts in ticks of up to 10 ms, rounded twice: what answers within one would seem older than its cause."""


class _Later(msgspec.Struct):
    after_ms: int = 0


class _ReconnectLater(msgspec.Struct):
    payload: _Later


_read_later = msgspec.json.Decoder(_ReconnectLater).decode


class Drains(Protocol):
    """Waits until the transport's buffer is below its low mark. Raises ConnectionError."""

    async def drain(self) -> None: ...


class SseLink:
    """See ports.Link. Made when the headers are written; `ended` is set when nothing more can be written."""

    __slots__ = (
        "_close_timeout_seconds",
        "_drains",
        "_envelopes",
        "_events",
        "_is_chunked",
        "_is_closing",
        "_retry_ms",
        "_slot_at",
        "_socket",
        "_timer",
        "_transport",
        "ended",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        drains: Drains,
        events: EventStream,
        *,
        is_chunked: bool,
        user_timeout_seconds: float,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        """`user_timeout_seconds`: the kernel gives up on bytes that the peer does not acknowledge for so long."""
        self._transport = transport
        self._drains = drains
        self._events = events
        self._envelopes = Envelopes()
        self._is_chunked = is_chunked
        self._is_closing = False
        self._retry_ms = 0
        self._slot_at: float | None = None
        """Loop time of the slot that it was given."""
        self._timer: asyncio.TimerHandle | None = None
        self._close_timeout_seconds = close_timeout_seconds
        self._socket: Any = transport.get_extra_info("socket")
        self.ended = asyncio.Event()
        if transport.is_closing():
            self.ended.set()
        else:
            transport.set_write_buffer_limits(HIGH_MARK_BYTES, LOW_MARK_BYTES)
            _give_up_after(self._socket, user_timeout_seconds)

    def begin(self, retry_ms: int) -> None:
        """`retry_ms`: when a browser comes back by itself, unless it is told otherwise."""
        self._retry_ms = retry_ms
        self._send(self._events.begin(retry_ms))

    def write(self, frames: bytes) -> None:
        if self._is_closing:
            return
        self._send(b"".join([self._event(self._envelopes.read(data)) for data in decode_texts(frames)]))
        if self._events.is_over:
            self.close(CloseCode.NORMAL, "")

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_clear(self) -> bool:
        return not self.unsent_bytes()

    async def drained(self) -> None:
        try:
            await self._drains.drain()
        except ConnectionError:
            return

    def ping(self, nonce: bytes) -> None:  # noqa: ARG002  the peer's kernel answers, with no word of ours
        self._send(self._events.comment())

    def idle_seconds(self) -> float | None:
        if self._transport.is_closing():
            return None
        if _TCP_INFO is None:
            return 0.0  # nobody can tell, so nobody is given up for it: the kernel's own time-outs remain
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 60)
            (milliseconds,) = _last_ack_recv(info)
        except OSError:
            return 0.0
        return max(0.0, float(milliseconds - _TICK_MS)) / 1000

    def rtt_seconds(self) -> float | None:
        return kernel_rtt_seconds(self._socket)

    def close(self, code: CloseCode, reason: str) -> None:
        """Only the first call counts. The response ends within the close time-out."""
        if self._is_closing:
            return
        if not reason and code in CLOSE_RULES:
            reason = CLOSE_RULES[code].meaning
        self._send(self._events.close(code, reason, self._retry_after(code)))
        self._is_closing = True
        self._give_up_later()
        self.ended.set()

    @property
    def is_over(self) -> bool:
        """All that was asked for has been written."""
        return self._events.is_over

    @property
    def is_closing(self) -> bool:
        """Our `close` event was written."""
        return self._is_closing

    def look(self) -> None:
        """Something arrived, or the connection ended: an EventSource sends nothing after its request."""
        if not self._transport.is_closing():
            self._transport.close()
            self._give_up_later()  # who does not read keeps no memory here: its place is given back now
        self.ended.set()

    def end(self) -> None:
        """Nothing is written any more. What is still unsent goes out within the close time-out."""
        self._is_closing = True
        if self._timer is not None and not self.unsent_bytes():
            self._timer.cancel()

    def _give_up_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._close_timeout_seconds, self._transport.abort)

    def _event(self, envelope: Envelope) -> bytes:
        if not envelope.kind:
            return self._events.text(envelope.data, envelope.cursor or "")
        event = self._events.control(envelope.kind, envelope.data, envelope.cursor)
        if envelope.kind != "reconnect_later":
            return event
        # A native EventSource comes back by itself: in its slot, please.
        after_ms = max(1, _read_later(envelope.data).payload.after_ms)
        self._slot_at = asyncio.get_running_loop().time() + after_ms / 1000
        return b"retry: %d\n%b" % (after_ms, event) if event else event

    def _retry_after(self, code: int) -> int | None:
        """A browser counts from the end of its stream: of its slot only what is left then, or it would wait twice."""
        retry_ms = retry_after_close(code)
        if retry_ms is not None or self._slot_at is None:
            return retry_ms
        left_ms = int(1000 * (self._slot_at - asyncio.get_running_loop().time()))
        return max(left_ms, self._retry_ms // 4)

    def _send(self, data: bytes) -> None:
        # A peer's reset closes the transport before anybody hears of it; uvloop's then raises on a write.
        if not data or self._is_closing or self._transport.is_closing():
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)


def _give_up_after(sock: Any, seconds: float) -> None:
    if _TCP_USER_TIMEOUT is None:
        return
    try:
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_USER_TIMEOUT, int(seconds * 1000))
    except OSError:
        return  # no TCP socket: nothing depends on it


__all__ = ["SseLink"]
