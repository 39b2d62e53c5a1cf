"""One WebSocket as the core sees it (ports.Link): the only place that writes prebuilt frames to aiohttp's transport.

Owns the close handshake: the first code is the one the peer sees, and the link ends whatever the peer does (A03, A04).
Must never be mixed with aiohttp's own sending: `RelayWebSocket` only receives.
"""

import asyncio
import socket
import sys
from fcntl import ioctl
from struct import Struct
from typing import Any, Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from gateway.adapters.http.kernel_rtt import kernel_rtt_seconds
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode
from gateway.domain.wire.ws_frames import encode_close, encode_ping, encode_pong

SEND_BUFFER_BYTES: Final = 64 * 1024
"""SO_SNDBUF: what the kernel holds cannot be recalled when a client moves, so it is kept small."""
NOT_SENT_BYTES: Final = 16 * 1024
"""TCP_NOTSENT_LOWAT: of it, what is not even on its way."""
HIGH_MARK_BYTES: Final = 64 * 1024
LOW_MARK_BYTES: Final = 32 * 1024
"""`drained` waits when more than the high mark is unsent, until less than the low mark is."""
CLOSE_TIMEOUT_SECONDS: Final = 5.0
"""A peer that does not answer our close frame is cut then."""
LINGER_SECONDS: Final = 1.0
"""After a protocol error: what the peer still sends is read away, or a reset would overtake our close frame."""

_TCP_NOTSENT_LOWAT: Final = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_last_data_recv = Struct("=52xI").unpack
"""struct tcp_info: tcpi_last_data_recv, ms since the last data from the peer."""
_SIOCOUTQNSD: Final = 0x894B
"""Linux: how many bytes of the socket have not been sent at all."""
_NO_CODE: Final = 1005
_INHERITS: Final = sys.platform == "linux"


class RelayWebSocket(web.WebSocketResponse):
    """aiohttp's receiving half. Its own way of closing is replaced by the link, which closes once and in time."""

    def __init__(self, *, protocols: tuple[str, ...], max_message_bytes: int) -> None:
        super().__init__(
            protocols=protocols,
            max_msg_size=max_message_bytes + 1,  # aiohttp refuses what reaches its limit
            autoclose=False,
            autoping=False,
            compress=False,
        )
        self.link: WebSocketLink | None = None

    async def close(self, *, code: int = CloseCode.NORMAL, message: bytes = b"", drain: bool = True) -> bool:  # noqa: ARG002
        """Called by aiohttp when the peer broke the protocol or the stream ended; never by us."""
        if self.link is not None:
            self.link.close_raw(code, message.decode(errors="replace"))
        return True


class WebSocketLink:
    """See ports.Link. Made right after `prepare`."""

    __slots__ = (
        "_close_timeout_seconds",
        "_is_closing",
        "_socket",
        "_timer",
        "_transport",
        "_transport_write",
        "_writer",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        writer: AbstractStreamWriter,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        """`writer` is what `prepare` returned; only its `drain` is used."""
        self._transport = transport
        self._transport_write = transport.write
        self._writer = writer
        self._socket: Any = transport.get_extra_info("socket")
        self._is_closing = False
        self._timer: asyncio.TimerHandle | None = None
        self._close_timeout_seconds = close_timeout_seconds
        if not transport.is_closing():
            transport.set_write_buffer_limits(HIGH_MARK_BYTES, LOW_MARK_BYTES)
            if not _INHERITS:
                tune(self._socket)

    def write(self, frames: bytes) -> None:
        # A peer's reset closes the transport before our reading side hears of it; uvloop's then raises on a write.
        if not self._is_closing and not self._transport.is_closing():
            self._transport_write(frames)

    def unsent_bytes(self) -> int:
        return self._transport.get_write_buffer_size()

    def is_clear(self) -> bool:
        if self._transport.get_write_buffer_size() or self._transport.is_closing():
            return False
        if not _INHERITS:
            return True
        try:
            waiting = ioctl(self._socket.fileno(), _SIOCOUTQNSD, b"\0\0\0\0")
        except (OSError, ValueError, AttributeError):
            return True  # no TCP socket: there is nothing to ask
        return waiting == b"\0\0\0\0"

    async def drained(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    def ping(self, nonce: bytes) -> None:
        self.write(encode_ping(nonce))

    def pong(self, payload: bytes) -> None:
        """Answer the peer's ping, unless it does not read its answers."""
        if self.unsent_bytes() <= HIGH_MARK_BYTES:
            self.write(encode_pong(payload))

    def idle_seconds(self) -> float | None:
        if _TCP_INFO is None or self._transport.is_closing():
            return None
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 56)
        except OSError:
            return None
        (milliseconds,) = _last_data_recv(info)
        return float(milliseconds) / 1000

    def rtt_seconds(self) -> float | None:
        return kernel_rtt_seconds(self._socket)

    def close(self, code: CloseCode, reason: str) -> None:
        self.close_raw(code, reason)

    def close_raw(self, code: int, reason: str = "") -> None:
        """The same for any code, e.g. one that the parser chose. Only the first call counts."""
        if self._is_closing:
            return
        if not reason and code in CLOSE_RULES:
            reason = CLOSE_RULES[CloseCode(code)].meaning
        if not self._transport.is_closing():
            self._transport_write(encode_close(code, reason))
        self._is_closing = True
        self._timer = asyncio.get_running_loop().call_later(self._close_timeout_seconds, self._transport.abort)

    @property
    def is_closing(self) -> bool:
        """Our close frame was written, or the end was seen."""
        return self._is_closing

    def answer_close(self, code: int | None) -> None:
        """The peer's close frame came: echo its code, unless it answers ours, and end."""
        self.close_raw(CloseCode.NORMAL if code in (None, 0, _NO_CODE) else code or CloseCode.NORMAL)
        self._transport.close()

    def end(self) -> None:
        """The reading side has ended. What is still unsent goes out within the close time-out."""
        self._is_closing = True
        self._transport.close()
        if self._timer is not None and not self.unsent_bytes():
            self._timer.cancel()


def tune(sock: Any) -> None:
    """Small buffers below ours. Linux hands a listening socket's options on to those that it accepts."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, NOT_SENT_BYTES)
    except OSError:
        return  # no TCP socket: nothing depends on it


__all__ = ["CLOSE_TIMEOUT_SECONDS", "LINGER_SECONDS", "RelayWebSocket", "WebSocketLink", "tune"]
