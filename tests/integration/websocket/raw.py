"""A client of the WebSocket endpoint that speaks bytes, and so can do what no library does."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.integration.websocket.stage import World


def masked(payload: bytes, opcode: int, *, is_last: bool = True) -> bytes:
    first = opcode | (0x80 if is_last else 0)
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    else:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    return head + b"\0\0\0\0" + payload


@asynccontextmanager
async def raw_socket(world: World) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Upgraded; the welcome is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    writer.write(
        b"GET /relay?sid=raw HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    assert b'"kind":"welcome"' in (await raw_frame(reader))[1]
    try:
        yield reader, writer
    finally:
        writer.close()


async def raw_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(10):
        first, size = await reader.readexactly(2)
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await reader.readexactly(8))
        return first & 0xF, await reader.readexactly(size)


async def raw_close(reader: asyncio.StreamReader) -> int:
    while True:
        opcode, payload = await raw_frame(reader)
        if opcode == 8:
            return int.from_bytes(payload[:2], "big")
