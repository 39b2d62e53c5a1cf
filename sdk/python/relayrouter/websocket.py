"""The first rung: a WebSocket. One task reads (the session's), one writes: acks, pings, and what the user says."""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress

import aiohttp

from relayrouter.channel import Channel, Circumstances
from relayrouter.close_codes import NORMAL
from relayrouter.cursor import Cursor
from relayrouter.endings import After, Ending, broken, closed
from relayrouter.http import TRANSPORT_ERRORS, retry_after_seconds, session_url
from relayrouter.messages import Frame, decode_frames
from relayrouter.probe import Due
from relayrouter.states import ChannelKind

SUBPROTOCOL = "relayrouter.v1"
_MAX_FRAME_BYTES = 16 * 1024 * 1024
_MAX_UNSENT = 256
"""Texts that wait for the socket; beyond it the session says them again later."""
_CLOSE_SECONDS = 1.0
_CLOSING = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)


class WebSocketChannel(Channel):
    kind = ChannelKind.WEBSOCKET

    def __init__(self, about: Circumstances, query: dict[str, str]) -> None:
        super().__init__(about, query | {"ack": "1", "batch": "1"})
        self._frames: Iterator[Frame] = iter(())
        """Of the message that was read last, those that were not handed out yet."""
        self._ws: aiohttp.ClientWebSocketResponse | None = None
        self._unsent: deque[str] = deque()
        self._wake = asyncio.Event()
        self._line: tuple[str, str] | None = None
        self._acked_seq = 0
        self._applied_seq = 0
        self._unacked_bytes = 0
        self._unacked_since = 0.0
        self._pings = 0
        self._ping_sent_at = 0.0
        self._is_welcome = False
        self._wall_skew = 0.0

    async def open(self) -> Ending | None:
        http = self._about.http
        try:
            self._ws = await http.client.ws_connect(
                session_url(http.base, http.session, "ws", self._query, is_socket=True),
                protocols=(SUBPROTOCOL,),
                headers=http.credentials.headers(),
                autoping=False,
                max_msg_size=_MAX_FRAME_BYTES,
                timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
            )
        except aiohttp.WSServerHandshakeError as exc:
            self.was_answered = True
            return await http.why(self._query, exc.status, retry_after_seconds(exc.headers))
        except TRANSPORT_ERRORS:
            return await self.why_not()
        self.was_answered = True
        self._about.start("writer", self._write())
        return None

    async def receive(self) -> Frame | Ending:
        ws = self._ws
        while ws is not None and self._ended is None:
            for frame in self._frames:
                # One of several may be handed out long after it came: what is next waits for us, it is not silent.
                self.liveness.heard(self._about.clock())
                if frame.is_control and frame.kind == "pong":
                    self._take_pong(frame)
                return frame
            try:
                message = await ws.receive()
            except (aiohttp.ClientError, ConnectionError):
                return self._end(broken("the connection broke"))
            self.liveness.heard(self._about.clock())
            if message.type is aiohttp.WSMsgType.TEXT:
                self._frames = decode_frames(message.data)
            elif message.type is aiohttp.WSMsgType.BINARY:
                self._about.on_media(message.data)
            elif message.type is aiohttp.WSMsgType.PING:
                with suppress(aiohttp.ClientError, ConnectionError):
                    await ws.pong(message.data)
            elif message.type in _CLOSING:
                # Only a close frame has a code; the library's own `close_code` also says 1000 for a link that broke.
                is_frame = message.type is aiohttp.WSMsgType.CLOSE and message.data
                code, reason = (int(message.data), str(message.extra or "")) if is_frame else (0, "")
                return self._end(closed(code, reason) if code else broken("the connection broke"))
        return self._end(broken("the channel was left"))

    # ---- what the session tells --------------------------------------------------------------------------------

    def say(self, text: str) -> bool:
        if len(self._unsent) < _MAX_UNSENT:
            self._unsent.append(text)
            self._wake.set()
        return True

    def welcomed(self, heartbeat_seconds: float) -> None:
        super().welcomed(heartbeat_seconds)
        self._is_welcome = True
        self._wake.set()

    def applied(self, cursor: Cursor, size_bytes: int) -> None:
        if cursor.line != self._line:
            self._line, self._acked_seq, self._unacked_bytes = cursor.line, 0, 0
        if not self._unacked_bytes:
            self._unacked_since = self._about.clock()
        self._applied_seq = cursor.seq
        self._unacked_bytes += size_bytes
        self._wake.set()

    def probe(self) -> None:
        self.liveness.probe()
        self._wake.set()

    async def close(self) -> None:
        if self._ws is not None and not self._ws.closed:
            with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    if self._unacked_bytes:
                        await self._ack(self._ws)
                    await self._ws.close(code=NORMAL)
        self.detach()

    def detach(self) -> None:
        self._end(broken("detached"))
        ws, self._ws = self._ws, None
        if ws is not None:
            _cut(ws)
            if not ws.closed:
                self._about.start("reaper", _reap(ws))

    # ---- the writer --------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        ws = self._ws
        if ws is None:
            return
        self._wall_skew = self._about.wall_clock() - self._about.clock()
        try:
            while self._ended is None:
                self._wake.clear()
                self._look_at_clocks()
                async with asyncio.timeout(self._about.timing.connect_timeout):
                    await self._write_due(ws)
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, self._next_deadline() - self._about.clock())):
                        await self._wake.wait()
        except TimeoutError:
            self._end(Ending(After.SILENT, "it takes nothing any more"))
            _cut(ws)
        except (aiohttp.ClientError, ConnectionError):
            return  # the reader tells how it ended

    async def _write_due(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        while self._unsent:
            await ws.send_str(self._unsent.popleft())
            self.liveness.sent(self._about.clock())
        now = self._about.clock()
        if self._unacked_bytes and now >= self._ack_deadline():
            await self._ack(ws)
            self.liveness.sent(now)
        match self.liveness.look(now) if self._is_welcome else Due.NOTHING:
            case Due.ASK:
                self._pings += 1
                self._ping_sent_at = now
                self.liveness.asked(now)
                await ws.send_str(json.dumps({"type": "control", "payload": {"kind": "ping", "id": f"p{self._pings}"}}))
            case Due.DEAD:
                reason = f"no answer within {self._about.timing.probe_timeout:g} s"
                self._end(Ending(After.SILENT, reason))
                _cut(ws)
            case Due.NOTHING:
                pass

    async def _ack(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self._unacked_bytes = 0
        if self._applied_seq > self._acked_seq:
            self._acked_seq = self._applied_seq
            await ws.send_str(f'{{"type":"control","payload":{{"kind":"ack","seq":{self._applied_seq}}}}}')

    def _look_at_clocks(self) -> None:
        """The wall clock went on while ours stood still: the machine slept, and sockets die in their sleep."""
        skew = self._about.wall_clock() - self._about.clock()
        if skew - self._wall_skew > 2 * self.liveness.interval_seconds:
            self.liveness.probe()
        self._wall_skew = skew

    def _ack_deadline(self) -> float:
        timing = self._about.timing
        return 0.0 if self._unacked_bytes >= timing.ack_bytes else self._unacked_since + timing.ack_after

    def _next_deadline(self) -> float:
        deadline = self.liveness.deadline() if self._is_welcome else self._about.clock() + 3600.0
        if self.liveness.is_stalled:
            deadline = self._about.clock() + self.liveness.interval_seconds
        return min(deadline, self._ack_deadline()) if self._unacked_bytes else deadline

    def _take_pong(self, frame: Frame) -> None:
        self.liveness.answered()
        if frame.payload.get("id") == f"p{self._pings}":
            self._about.on_rtt(self._about.clock() - self._ping_sent_at)

    def _end(self, ending: Ending) -> Ending:
        """The first one counts."""
        if self._ended is None:
            self._ended = ending
        self._wake.set()
        return self._ended


async def _reap(ws: aiohttp.ClientWebSocketResponse) -> None:
    """Of a link that was cut: gives the library's objects back. It finds the end at once."""
    with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await ws.close()


def _cut(ws: aiohttp.ClientWebSocketResponse) -> None:
    """End the link now: neither side's buffers matter any more. The loop closes the transport on what it then reads."""
    link = ws.get_extra_info("socket")
    if link is None:
        return
    with suppress(OSError, ValueError):
        own = socket.socket(fileno=os.dup(link.fileno())) if os.name == "posix" else None
        if own is not None:
            with own:
                own.shutdown(socket.SHUT_RDWR)


__all__ = ["SUBPROTOCOL", "WebSocketChannel"]
