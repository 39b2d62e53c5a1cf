"""One WebSocket of a crowd's client on a socket that never blocks: upgrade, frames, pongs, little Python."""

import base64
import errno
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult

from loadtest.crowd.pulse import Pulse

RECEIVE_BYTES: Final = 64 * 1024
_TIMESTAMPS: Final = 35
"""SO_TIMESTAMPNS, which Python has no name for: the kernel says when it received what it hands out."""
_TIMESTAMP: Final = struct.Struct("qq")
_UNDER_WAY: Final = (0, errno.EINPROGRESS)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is no upgrade, or no answer at all (status 0)."""

    status: int
    code: str = ""
    after_seconds: float | None = None


class Link:
    """`on_writable` and `on_readable` are called by the loop; what happens goes to the callbacks."""

    __slots__ = (
        "_buffer", "_on_frame", "_request", "_socket", "arrived_ms", "close_code", "connection", "is_upgraded",
        "last_seq", "pulse", "refusal", "url",
    )  # fmt: skip

    def __init__(
        self, url: SplitResult, path: str, on_frame: "Callable[[Link, bytes], None]", pulse: Pulse, token: str = ""
    ) -> None:
        self.url = url
        self.pulse = pulse
        self._on_frame = on_frame
        self._buffer = b""
        access = f"Authorization: Bearer {token}\r\n" if token else ""
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: {url.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n"
            f"{access}\r\n"
        ).encode()
        self.is_upgraded = False
        self.connection = ""
        """Its id, once it was welcomed."""
        self.last_seq = 0
        """Of the last message that it brought, or its welcome's."""
        self.arrived_ms = 0.0
        """When this machine had what is being read, on the wall clock: a crowd that is busy comes to it later."""
        self.close_code = 0
        self.refusal: Refusal | None = None
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        if self._socket.connect_ex((url.hostname or "127.0.0.1", url.port or 80)) not in _UNDER_WAY:
            self.refusal = Refusal(0)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def ask(self) -> None:
        """Whether anybody is there."""
        self._send(1, b'{"type":"control","payload":{"kind":"ping","id":"p"}}')

    def on_writable(self) -> bool:
        """Connected, or not. False: not."""
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.refusal = Refusal(0)
            return False
        self._socket.send(self._request)
        return True

    def on_readable(self) -> bool:
        """False: the socket has ended, or was refused."""
        try:
            data, told, _, _ = self._socket.recvmsg(RECEIVE_BYTES, socket.CMSG_SPACE(_TIMESTAMP.size))
        except BlockingIOError:
            return True
        except OSError:
            data, told = b"", []
        self.arrived_ms = _milliseconds(told)
        if not data:
            if not self.is_upgraded:
                self.refusal = self.refusal or Refusal(0)
            return False
        buffer = self._buffer + data if self._buffer else data
        if not self.is_upgraded:
            head, end, rest = buffer.partition(b"\r\n\r\n")
            if not end:
                self._buffer = buffer
                return True
            if not head.startswith(b"HTTP/1.1 101"):
                return self._read_refusal(buffer, head, rest)
            self.is_upgraded = True
            buffer = rest
        return self._read_frames(buffer)

    def _read_refusal(self, buffer: bytes, head: bytes, body: bytes) -> bool:
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.decode().split("\r\n")[1:])
        }
        if len(body) < int(headers.get("content-length", 0)):
            self._buffer = buffer
            return True
        after = headers.get("retry-after")
        try:
            code = json.loads(body)["error"]["code"]
        except (ValueError, KeyError, TypeError):
            code = ""
        self.refusal = Refusal(int(head.split(b" ", 2)[1]), code, None if after is None else float(after))
        return False

    def _read_frames(self, buffer: bytes) -> bool:
        position, size = 0, len(buffer)
        while size - position >= 2:
            opcode, length, start = buffer[position] & 15, buffer[position + 1], position + 2
            if length == 126:
                length, start = int.from_bytes(buffer[start : start + 2], "big"), start + 2
            elif length == 127:
                length, start = int.from_bytes(buffer[start : start + 8], "big"), start + 8
            if start + length > size:
                break
            payload = buffer[start : start + length]
            position = start + length
            match opcode:
                case 1:
                    self._on_frame(self, payload)
                case 9:
                    self._send(10, payload)
                case 8:
                    self.close_code = int.from_bytes(payload[:2], "big")
                    self._send(8, payload[:2])
                    return False
                case _:
                    pass
        self._buffer = buffer[position:]
        return True

    def _send(self, opcode: int, payload: bytes) -> None:
        try:
            self._socket.send(bytes((0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload)
        except OSError:
            return  # what ended shows itself at the next read


def parse(payload: bytes) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(payload)
    return frame


def _milliseconds(told: list[tuple[int, int, bytes]]) -> float:
    """Of the kernel's word; a kernel that says none leaves the time at which it is read."""
    for _, what, value in told:
        if what == _TIMESTAMPS:
            seconds, nanoseconds = _TIMESTAMP.unpack(value)
            return float(seconds * 1000 + nanoseconds / 1e6)
    return time.time() * 1000


__all__ = ["Link", "Refusal", "parse"]
