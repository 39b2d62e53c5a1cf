"""A WebSocket client on a raw socket (RFC 6455): the oracle's own, so that no library's courtesy hides a fault.

Owns framing, masking and the handshake. Must never import the gateway. Called by reader and by fault tests directly.
"""

import asyncio
import base64
import os
import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from loadtest.plain_http import Answer, read_answer_head, read_body

FIN: Final = 0x80
MASKED: Final = 0x80
MAX_MESSAGE_BYTES: Final = 4 * 1024**2
READ_BYTES: Final = 64 * 1024


class Op(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class Frame(NamedTuple):
    op: Op
    payload: bytes

    @property
    def close_code(self) -> int:
        """Of a close frame; 1005 when it carries none."""
        return int.from_bytes(self.payload[:2], "big") if len(self.payload) >= 2 else 1005

    @property
    def close_reason(self) -> str:
        return self.payload[2:].decode()


class Refused(Exception):
    """The upgrade was answered by an ordinary response."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status} {answer.body[:200]!r}")
        self.answer = answer


class Broken(Exception):
    """The other side broke RFC 6455, or the connection ended without a close frame (what browsers call 1006)."""


def encode(op: Op, payload: bytes = b"", *, mask: bytes | None = None) -> bytes:
    """One whole frame as a client sends it: masked."""
    key = os.urandom(4) if mask is None else mask
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", FIN | op, MASKED | size)
    elif size < 65536:
        head = struct.pack("!BBH", FIN | op, MASKED | 126, size)
    else:
        head = struct.pack("!BBQ", FIN | op, MASKED | 127, size)
    return head + key + _masked(payload, key)


def _masked(payload: bytes, key: bytes) -> bytes:
    size = len(payload)
    if not size:
        return b""
    stretched = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(stretched, "big")).to_bytes(size, "big")


class Decoder:
    """Bytes of a server in, whole messages and control frames out. Raises Broken."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._op = Op.CONTINUATION

    def feed(self, data: bytes) -> list[Frame]:
        self._buffer += data
        frames: list[Frame] = []
        start = 0
        buffer = self._buffer
        while True:
            parsed = self._parse(start)
            if parsed is None:
                break
            is_last, op, first, start = parsed
            self._collect(is_last, op, bytes(buffer[first:start]), frames)
        del buffer[:start]
        return frames

    def _parse(self, start: int) -> tuple[bool, Op, int, int] | None:
        """(fin, op, where the payload begins, where it ends) of the next frame; None while it is not whole."""
        buffer = self._buffer
        if len(buffer) < start + 2:
            return None
        first, second = buffer[start], buffer[start + 1]
        if first & 0x70 or second & MASKED:
            raise Broken("a server's frame is neither masked nor extended")
        size, at = second & 0x7F, start + 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(buffer) < at + width:
                return None
            size = int.from_bytes(buffer[at : at + width], "big")
            at += width
        if size > MAX_MESSAGE_BYTES:
            raise Broken(f"a frame of {size} bytes")
        if len(buffer) < at + size:
            return None
        try:
            op = Op(first & 0x0F)
        except ValueError:
            raise Broken(f"unknown opcode {first & 0x0F}") from None
        return bool(first & FIN), op, at, at + size

    def _collect(self, is_last: bool, op: Op, payload: bytes, frames: list[Frame]) -> None:
        if op >= Op.CLOSE:
            if not is_last or len(payload) > 125:
                raise Broken("a control frame that is cut or too long")
            if op is Op.CLOSE and len(payload) > 2:
                _check_utf8(payload[2:])
            frames.append(Frame(op, payload))
            return
        if (op is Op.CONTINUATION) != bool(self._parts):
            raise Broken("a fragment out of place")
        if op is not Op.CONTINUATION:
            self._op = op
        self._parts.append(payload)
        if is_last:
            whole, self._parts = b"".join(self._parts), []
            if self._op is Op.TEXT:
                _check_utf8(whole)
            frames.append(Frame(self._op, whole))


def _check_utf8(payload: bytes) -> None:
    try:
        payload.decode()
    except UnicodeDecodeError:
        raise Broken("text that is not UTF-8") from None


class WebSocket:
    """An open socket. `frames` waits for bytes; everything else returns at once."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, read_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._read_bytes = read_bytes
        self._decoder = Decoder()
        self.bytes_rcvd = 0

    @classmethod
    async def open(
        cls,
        url: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        receive_buffer_bytes: int = 0,
        timeout_seconds: float = 10,
    ) -> "WebSocket":
        """Raises Refused, Broken, OSError (TimeoutError included)."""
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await _connect(url, receive_buffer_bytes)
            try:
                host = urlsplit(url).netloc
                key = base64.b64encode(os.urandom(16)).decode()
                lines = [
                    f"GET {path} HTTP/1.1",
                    f"Host: {host}",
                    "Upgrade: websocket",
                    "Connection: Upgrade",
                    f"Sec-WebSocket-Key: {key}",
                    "Sec-WebSocket-Version: 13",
                    *_header_lines(headers or {}),
                ]
                writer.write("\r\n".join([*lines, "", ""]).encode())
                await _check_answer(reader)
            except BaseException:
                writer.transport.abort()
                raise
        return cls(reader, writer, min(READ_BYTES, receive_buffer_bytes or READ_BYTES))

    async def frames(self) -> list[Frame]:
        """What the next read brings, perhaps nothing whole. Raises Broken when the stream ends."""
        try:
            data = await self._reader.read(self._read_bytes)
        except OSError as exc:
            raise Broken(f"connection lost: {type(exc).__name__}") from exc
        if not data:
            raise Broken("connection ended without a close frame")
        self.bytes_rcvd += len(data)
        return self._decoder.feed(data)

    def send_raw(self, data: bytes) -> None:
        """Bytes as they are, e.g. of an unfinished frame."""
        self._writer.write(data)

    def send(self, op: Op, payload: bytes = b"") -> None:
        self._writer.write(encode(op, payload))

    def send_text(self, text: str) -> None:
        self.send(Op.TEXT, text.encode())

    def send_close(self, code: int = 1000) -> None:
        self.send(Op.CLOSE, code.to_bytes(2, "big"))

    def pause(self) -> None:
        """Read nothing more: the kernel's window fills."""
        with suppress(RuntimeError, NotImplementedError):
            self._writer.transport.pause_reading()  # type: ignore[attr-defined]

    def reset(self) -> None:
        """End with a TCP reset, as a killed app does."""
        sock = self._writer.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def shut(self, timeout_seconds: float = 1) -> None:
        """Let what was sent leave, then end the connection."""
        self._writer.close()
        with suppress(OSError):
            async with asyncio.timeout(timeout_seconds):
                await self._writer.wait_closed()
        self._writer.transport.abort()


async def _connect(url: str, receive_buffer_bytes: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer_bytes:
            # Before connect: afterwards the window is agreed upon.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await asyncio.get_running_loop().sock_connect(sock, (parts.hostname or "127.0.0.1", parts.port or 80))
    except BaseException:
        sock.close()
        raise
    return await asyncio.open_connection(sock=sock, limit=receive_buffer_bytes or READ_BYTES)


async def _check_answer(reader: asyncio.StreamReader) -> None:
    try:
        head = await read_answer_head(reader)
        if head.status != 101:
            raise Refused(await read_body(reader, head))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as exc:
        raise Broken(f"no answer to the upgrade: {type(exc).__name__}") from exc


def _header_lines(headers: Mapping[str, str]) -> Iterable[str]:
    return (f"{name}: {value}" for name, value in headers.items())


__all__ = ["Broken", "Decoder", "Frame", "Op", "Refused", "WebSocket", "encode"]
