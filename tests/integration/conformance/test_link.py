"""The link of the real faults breaks what it says, and passes everything else byte for byte."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from sdk.conformance.real.link import Link


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
    writer.close()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    link = Link(server.sockets[0].getsockname()[:2])
    await link.start()
    yield link
    await link.stop()
    server.close()


async def connected(link: Link) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """With a first byte passed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(b"1")
    assert await asyncio.wait_for(reader.readexactly(1), 5) == b"1"
    return reader, writer


async def test_a_cut_resets_what_is_open_and_lets_in_what_is_new(link: Link) -> None:
    reader, writer = await connected(link)

    assert link.cut() == 1

    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(reader.readexactly(1), 5)
    writer.close()
    _, again = await connected(link)
    again.close()


async def test_a_swallowed_connection_stays_open_and_says_nothing(link: Link) -> None:
    reader, writer = await connected(link)
    link.swallow()

    writer.write(b"2")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.3)
    _, other = await connected(link)
    writer.close()
    other.close()


async def test_a_blocked_upgrade_gets_a_page_and_other_requests_pass(link: Link) -> None:
    link.blocked = {"websocket"}
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)

    writer.write(b"GET /ws HTTP/1.1\r\nUpgrade: WebSocket\r\n\r\n")

    assert b"403" in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(b"GET /events HTTP/1.1\r\n\r\n")
    assert b"GET /events" in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    assert link.pages == 1
