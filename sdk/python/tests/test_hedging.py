"""Connections to an address behind which some hosts are dead: the SYN that nobody answers is not waited for alone."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from relayrouter.hedging import HedgedConnector

CONNECTIONS = 64


def _listening(port: int, backlog: int) -> socket.socket:
    """One of several on the same port: the kernel chooses by the client's own port, as a Service does."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(backlog)
    return listening


@pytest.fixture
def dead_host() -> Iterator[int]:
    """Its port: whoever is led to this listener hears nothing, as its queue is full."""
    with _listening(0, 0) as listening:
        port: int = listening.getsockname()[1]
        filling = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            assert one.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS)
            filling.append(one)
        yield port
        for one in filling:
            one.close()


@asynccontextmanager
async def _answering(listening: socket.socket) -> AsyncIterator[str]:
    """A host that lives."""
    server = web.Server(_answer)
    runner = web.ServerRunner(server)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    await runner.cleanup()


async def _answer(_: web.BaseRequest) -> web.Response:
    return web.Response(status=204, headers={"Connection": "close"})


@pytest.fixture
async def half_dead(dead_host: int) -> AsyncIterator[str]:
    """An address that leads to a host that answers, or to a dead one."""
    async with _answering(_listening(dead_host, 1024)) as url:
        yield url


async def test_with_half_of_the_hosts_dead_nearly_all_connect_at_the_first_attempt(half_dead: str) -> None:
    """One in sixteen is led to dead ones four times; with one try each it would be one in two."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=3.0)

    async def connects(http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(half_dead) as answer:
                return answer.status == 204
        except aiohttp.ServerTimeoutError:
            return False

    async with aiohttp.ClientSession(connector=HedgedConnector(), timeout=timeout) as http:
        connected = await asyncio.gather(*(connects(http) for _ in range(CONNECTIONS)))

    assert sum(connected) >= CONNECTIONS * 3 // 4


async def test_a_host_that_answers_is_connected_to_once() -> None:
    """What is in health pays nothing."""
    with _listening(0, 16) as listening:
        listening.settimeout(20)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        async with aiohttp.ClientSession(connector=HedgedConnector()) as http:
            asking = asyncio.create_task(http.get(url))
            came, _ = await asyncio.to_thread(listening.accept)
            with came:
                came.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
                (await asking).close()
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


class Counted(HedgedConnector):
    """How often aiohttp began a race."""

    races = 0

    async def _wrap_create_connection(self, *args: Any, **kwargs: Any) -> Any:
        self.races += 1
        return await super()._wrap_create_connection(*args, **kwargs)


async def test_a_port_that_refuses_is_one_failure() -> None:
    """As of one connection, whatever the number of tries: aiohttp does not go through the addresses again."""
    connector = Counted()
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        async with aiohttp.ClientSession(connector=connector) as http:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await http.get(url)

    assert (caught.value.errno, connector.races) == (errno.ECONNREFUSED, 1)


async def test_an_address_that_is_all_dead_costs_one_time_out(dead_host: int) -> None:
    """Tries are beside each other, not one after the other."""
    connector = Counted()
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=0.6)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        with pytest.raises(aiohttp.ServerTimeoutError):
            await http.get(f"http://127.0.0.1:{dead_host}/")

    assert connector.races == 1


async def test_what_speaks_no_tls_is_asked_once() -> None:
    """A gateway that sheds handshakes must not get four for one."""
    came = 0

    def come(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal came
        came += 1
        writer.write(b"no TLS\r\n")
        writer.close()

    async with await asyncio.start_server(come, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with aiohttp.ClientSession(connector=HedgedConnector()) as http:
            with pytest.raises(aiohttp.ClientConnectorError):
                await http.get(url)

    assert came == 1
