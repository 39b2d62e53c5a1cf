"""When media may be written to a socket: nothing waits, not even in the kernel, and the socket may have just ended."""

import asyncio
import socket
import sys
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from gateway.adapters.http.link import WebSocketLink


async def made() -> tuple[asyncio.Server, socket.socket, WebSocketLink, asyncio.Transport]:
    accepted: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), "127.0.0.1", 0)
    client = socket.create_connection(server.sockets[0].getsockname()[:2])
    writer = await accepted
    unused: Any = None
    return server, client, WebSocketLink(writer.transport, unused), writer.transport


async def until(is_so: Any) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="SIOCOUTQNSD is Linux's")
def test_a_link_is_clear_when_the_kernel_has_sent_everything() -> None:
    """Not while a peer that does not read leaves bytes there, though the kernel took them; nor when it has ended."""

    async def look() -> list[bool]:
        server, client, link, transport = await made()
        seen = [link.is_clear()]
        # More than the peer's kernel takes, less than would wait in our own buffer.
        while link.is_clear() and not link.unsent_bytes():
            link.write(bytes(10_000))
            await asyncio.sleep(0)
        await until(lambda: not link.unsent_bytes() or not link.is_clear())
        seen.append(link.is_clear())
        client.setblocking(False)

        def drained() -> bool:
            with suppress(BlockingIOError):
                client.recv(1 << 20)
            return link.is_clear()

        await until(drained)
        seen.append(link.is_clear())
        transport.abort()
        seen.append(link.is_clear())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        seen.append(link.is_clear())
        client.close()
        server.close()
        return seen

    for factory in (uvloop.new_event_loop, asyncio.new_event_loop):
        with asyncio.Runner(loop_factory=factory) as runner:
            assert runner.run(look()) == [True, False, True, False, False]
