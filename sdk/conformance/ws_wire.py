"""The server's side of RFC 6455, as little as a scripted server needs. Pure."""

import asyncio
import base64
import hashlib
from dataclasses import dataclass
from typing import Final

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10


def accept_key(key: str) -> str:
    return base64.b64encode(hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()).decode()


def encode(opcode: int, data: bytes, *, is_final: bool = True) -> bytes:
    """One unmasked frame."""
    head = bytes([(0x80 if is_final else 0) | opcode])
    if len(data) < 126:
        return head + bytes([len(data)]) + data
    if len(data) < 2**16:
        return head + bytes([126]) + len(data).to_bytes(2, "big") + data
    return head + bytes([127]) + len(data).to_bytes(8, "big") + data


def encode_close(code: int | None, reason: str) -> bytes:
    """`code` None: a close frame without a body, which a client sees as 1005."""
    return encode(CLOSE, b"" if code is None else code.to_bytes(2, "big") + reason.encode())


@dataclass(frozen=True, slots=True)
class Message:
    opcode: int
    data: bytes

    @property
    def close_code(self) -> int:
        return int.from_bytes(self.data[:2], "big") if len(self.data) >= 2 else 1005


async def read_message(reader: asyncio.StreamReader) -> Message:
    """A whole message, fragments joined. Raises IncompleteReadError when the peer has gone."""
    opcode, parts = 0, []
    while True:
        first, second = await reader.readexactly(2)
        length = second & 0x7F
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        mask = await reader.readexactly(4) if second & 0x80 else b"\0\0\0\0"
        data = _unmask(await reader.readexactly(length), mask)
        if first & 0x0F >= CLOSE:
            return Message(first & 0x0F, data)
        opcode = opcode or first & 0x0F
        parts.append(data)
        if first & 0x80:
            return Message(opcode, b"".join(parts))


def _unmask(data: bytes, mask: bytes) -> bytes:
    if not data:
        return b""
    repeated = (mask * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data, "big") ^ int.from_bytes(repeated, "big")).to_bytes(len(data), "big")


__all__ = ["BINARY", "CLOSE", "PING", "PONG", "TEXT", "Message", "accept_key", "encode", "encode_close", "read_message"]
