"""A client that asks and never reads: what it was sent does not stay."""

import asyncio
import socket

import pytest

from gateway.adapters.http import large_answer
from tests.integration.websocket.stage import World


@pytest.mark.parametrize("query", ["limit=1000", "limit=1000&wait=1&client=me&last_received_seq=0"])
async def test_an_answer_that_nobody_reads_is_given_up(
    world: World, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(large_answer, "LEAST_SECONDS", 0.2)
    monkeypatch.setattr(large_answer, "LEAST_BYTES_PER_SECOND", 1 << 30)
    for _ in range(8):
        await world.push("chat-1", *["x" * 8_000] * 8)
    server = world.gateway._public._runner.server
    assert server is not None
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader.setblocking(False)
        await asyncio.get_running_loop().sock_connect(reader, ("127.0.0.1", world.port))
        reader.send(f"GET /v1/sessions/chat-1/messages?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        own = reader.getsockname()

        async with asyncio.timeout(20):
            while not any(_peer(connection) == own and _unsent(connection) for connection in server.connections):
                await asyncio.sleep(0.01)
            while any(_peer(connection) == own and _unsent(connection) for connection in server.connections):
                await asyncio.sleep(0.01)


def _peer(connection: object) -> object:
    transport = getattr(connection, "transport", None)
    return None if transport is None else transport.get_extra_info("peername")


def _unsent(connection: object) -> int:
    transport = getattr(connection, "transport", None)
    return 0 if transport is None else transport.get_write_buffer_size()
