"""One request that the scripted server holds, and what it becomes: a WebSocket, an event stream, or an answer.

Owns the connection from its request to its end. Must never act by itself but by its habits. Called by server and play.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from sdk.conformance import ws_wire
from sdk.conformance.http_wire import CORS, Reply, Request
from sdk.conformance.script_log import Frame

SUBPROTOCOL: Final = "relayrouter.v1"
SLOW_PIECE_BYTES: Final = 64


@dataclass(slots=True)
class Habits:
    """What a channel does by itself; a scenario may switch each off."""

    pong: bool = True
    pong_delay_ms: int = 0
    input: str = "accept"
    """`accept`; `drop`: taken but the answer is lost; `ignore`: as if it had never come."""
    control: str = "accept"
    """`accept`, or `ignore`."""


class Exchange:
    """A request on its connection. `kind`: websocket, sse, poll, history, probe, input, control, other."""

    def __init__(
        self,
        kind: str,
        request: Request,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        note: Callable[[str], None],
        *,
        at: float,
        ident: str,
    ) -> None:
        self.kind = kind
        self.request = request
        self.at = at
        """When it came, on the monotonic clock."""
        self.connection = f"conn-{ident}"
        self.name = f"{kind}{ident}"
        self.habits = Habits()
        self.heard: list[Frame] = []
        self.heard_index = 0
        """Up to here a `hear` step has looked."""
        self.changed = asyncio.Condition()
        self.is_over = asyncio.Event()
        """The connection has ended, whoever ended it."""
        self.client_close: int | None = None
        """The code of the client's close frame, once it came."""
        self.on_message: Callable[[Exchange, Frame], Awaitable[None]] | None = None
        self._reader = reader
        self._writer = writer
        self._note = note
        self._mute = False
        self._readable = asyncio.Event()
        self._readable.set()
        self._listening: asyncio.Task[None] | None = None
        self._has_sent_close = False

    # ---- how it is answered ------------------------------------------------------------------------------------

    def reply(self, answer: Reply) -> None:
        self.note(f"answers {answer.status} {answer.body[:160].decode(errors='replace')}")
        self._writer.write(answer.encode())
        self.end()

    def open_websocket(self) -> None:
        headers = self.request.headers
        lines = [
            "HTTP/1.1 101 Switching Protocols",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Accept: {ws_wire.accept_key(headers.get('sec-websocket-key', ''))}",
        ]
        if SUBPROTOCOL in headers.get("sec-websocket-protocol", ""):
            lines.append(f"Sec-WebSocket-Protocol: {SUBPROTOCOL}")
        self._writer.write("\r\n".join([*lines, "", ""]).encode())
        self.note("opens")
        self._listening = asyncio.create_task(self._listen_websocket(self._listening))

    def open_events(self, headers: Mapping[str, str] | None = None) -> None:
        fields = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store", **CORS}
        lines = [f"{name}: {value}" for name, value in (fields | dict(headers or {})).items()]
        self._writer.write("\r\n".join(["HTTP/1.1 200 OK", *lines, "Connection: close", "", ""]).encode())
        self.note("opens")
        self.watch()

    def watch(self) -> None:
        """Notice when the client ends the connection."""
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen_end())

    # ---- what it says ------------------------------------------------------------------------------------------

    def send(self, frame: Frame, cursor: str | None = None) -> None:
        """`cursor`: the position after it, for an event stream's id."""
        text = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
        self.note(f"-> {text[:300]}")
        self.write(self.encode(text, frame, cursor))

    def encode(self, text: str, frame: Frame, cursor: str | None) -> bytes:
        if self.kind == "websocket":
            return ws_wire.encode(ws_wire.TEXT, text.encode())
        lines = [f"id: {cursor}"] if cursor else []
        if frame.get("type") == "control":
            kind = frame["payload"]["kind"]
            lines.append(f"event: {'relay_error' if kind == 'error' else kind}")
        return "\n".join([*lines, f"data: {text}", "", ""]).encode()

    def write(self, data: bytes) -> None:
        if not self._mute and not self._writer.is_closing():
            self._writer.write(data)

    async def write_slowly(self, data: bytes, bytes_per_second: float) -> None:
        """In small pieces, as a bad link delivers them."""
        for start in range(0, len(data), SLOW_PIECE_BYTES):
            piece = data[start : start + SLOW_PIECE_BYTES]
            self.write(piece)
            await asyncio.sleep(len(piece) / bytes_per_second)

    # ---- how it ends, or does not ------------------------------------------------------------------------------

    def close(self, code: int | None, reason: str = "") -> None:
        """As the gateway closes: a WebSocket's close frame, or the event `close` and the end of the stream."""
        self.note(f"closes {code} {reason}")
        if self.kind == "websocket":
            self._has_sent_close = True
            self.write(ws_wire.encode_close(code, reason))
            if self.client_close is not None:
                self.end()
        else:
            data = json.dumps({"code": code, "reason": reason})
            self.write(f"event: close\ndata: {data}\n\n".encode())
            self.end()

    def end(self) -> None:
        """FIN, without a word."""
        with suppress(OSError, RuntimeError):
            self._writer.close()
        self._set_over()

    def reset(self) -> None:
        """RST."""
        self.note("resets")
        sock = self._writer.get_extra_info("socket")
        with suppress(OSError, AttributeError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self._writer.transport.abort()
        self._set_over()

    def mute(self) -> None:
        """From here on it takes everything and says nothing, but never closes: a half-dead link."""
        self.note("falls silent")
        self._mute = True

    def stall(self) -> None:
        """It stops reading as well."""
        self.mute()
        self._readable.clear()
        with suppress(RuntimeError):
            self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    async def stop(self) -> None:
        """The scenario is over."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        with suppress(OSError, RuntimeError):
            self._writer.transport.abort()
        self._set_over()

    @property
    def client_has_left(self) -> bool:
        return self.is_over.is_set() or self._reader.at_eof()

    @property
    def cannot_end(self) -> bool:
        """It reads nothing, or it never answers the close frame that came: a browser has no way to end that earlier."""
        return not self._readable.is_set() or (self._mute and self.client_close is not None)

    def _set_over(self) -> None:
        self.is_over.set()

    def note(self, text: str) -> None:
        self._note(f"{self.name} {text}")

    # ---- what it hears -----------------------------------------------------------------------------------------

    async def _listen_websocket(self, watching: asyncio.Task[None] | None) -> None:
        """`watching`: what looked for the end while the request was held; a reader has one reader."""
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        try:
            while True:
                await self._readable.wait()
                message = await ws_wire.read_message(self._reader)
                if message.opcode == ws_wire.CLOSE:
                    await self._on_close(message.close_code)
                    return
                if message.opcode == ws_wire.PING:
                    self.write(ws_wire.encode(ws_wire.PONG, message.data))
                elif message.opcode == ws_wire.TEXT:
                    await self._on_text(message.data)
        except (OSError, asyncio.IncompleteReadError):
            self.note("the client's connection ended")
            self.end()

    async def _on_close(self, code: int) -> None:
        self.client_close = code
        self.note(f"<- close {code}")
        if not self._mute:
            if not self._has_sent_close:
                self._writer.write(ws_wire.encode_close(code if code != 1005 else None, ""))
            self.end()
        async with self.changed:
            self.changed.notify_all()

    async def _on_text(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        self.note(f"<- {text[:300]}")
        try:
            frame = json.loads(text)
        except ValueError:
            frame = {"type": "nonsense", "text": text}
        if self.on_message is not None:
            await self.on_message(self, frame)
        async with self.changed:
            self.heard.append(frame)
            self.changed.notify_all()

    async def _listen_end(self) -> None:
        with suppress(OSError):
            while await self._reader.read(4096):
                pass
        self.note("the client's connection ended")
        self.end()

    async def hear(self, matches: Callable[[Frame], bool]) -> Frame:
        """The next frame from the client that matches; frames before it are skipped."""
        async with self.changed:
            while True:
                while self.heard_index < len(self.heard):
                    frame = self.heard[self.heard_index]
                    self.heard_index += 1
                    if matches(frame):
                        return frame
                await self.changed.wait()


def is_asking(payload: Any) -> bool:
    """A control that the gateway answers with `accepted`."""
    return isinstance(payload, dict) and payload.get("kind", payload.get("action")) in (
        "interrupt",
        "pause",
        "resume",
        "cancel",
        "answer",
    )


__all__ = ["Exchange", "Habits", "is_asking"]
