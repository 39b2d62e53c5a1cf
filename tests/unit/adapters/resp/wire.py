"""A transport that keeps what was written, and a connection on it."""

import asyncio
from collections.abc import Callable

from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.replies import ReplyError


class Wire(asyncio.Transport):
    """What a socket's transport does, as far as a connection sees it. Loss is reported from the loop, as by asyncio."""

    def __init__(self, protocol: Connection) -> None:
        super().__init__()
        self.protocol = protocol
        self.writes: list[bytes] = []
        self.backlog_bytes = 0
        self.is_lost = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.backlog_bytes

    def is_closing(self) -> bool:
        return self.is_lost

    def abort(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


def connect(
    on_error: Callable[[ReplyError], None] = lambda _: None, on_writable: Callable[[], None] = lambda: None
) -> tuple[Connection, Wire]:
    connection = Connection(on_error, on_writable)
    wire = Wire(connection)
    connection.connection_made(wire)
    return connection, wire


async def settle() -> None:
    """All that is due in this and the next turns of the loop."""
    for _ in range(3):
        await asyncio.sleep(0)
