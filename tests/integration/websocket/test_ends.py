"""Every way in which a socket ends."""

import asyncio
import gc
import time
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

from gateway.adapters.http.link import RelayWebSocket, WebSocketLink
from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.visit import Visit
from tests.integration.websocket.raw import masked, raw_close, raw_socket
from tests.integration.websocket.stage import World


async def test_a_peer_that_closes_gets_its_code_back(world: World) -> None:
    async with raw_socket(world) as (reader, writer):
        writer.write(masked((4321).to_bytes(2, "big") + b"bye", opcode=0x8))
        assert await raw_close(reader) == 4321
        assert await reader.read() == b""
    assert await world.is_empty()
    assert world.gateway.measures.closes == {"client": 1}


@pytest.mark.parametrize("code", [1012, 4401, 4409])
async def test_the_code_that_was_chosen_is_the_one_that_arrives(world: World, code: int) -> None:
    async with raw_socket(world) as (reader, writer):
        (connection,) = world.gateway.hub.connections
        connection.begin_close(code, "because")
        connection.begin_close(1011, "too late")
        assert await raw_close(reader) == code
        writer.write(masked(code.to_bytes(2, "big"), opcode=0x8))
        assert await reader.read() == b""
    assert await world.is_empty()


async def talk_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the connection is cut."""
    while True:
        writer.write(masked(b"chat", opcode=0x1))
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.readexactly(1)


async def test_a_peer_that_goes_on_talking_after_our_close_is_cut(world: World) -> None:
    """Failure catalogue A03, A15."""
    async with raw_socket(world) as (reader, writer):
        (connection,) = world.gateway.hub.connections
        connection.begin_close(1012, "restart")
        began = time.monotonic()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await talk_on(reader, writer)
        assert 4 < time.monotonic() - began < 10
    assert await world.is_empty()


async def test_a_peer_that_reads_nothing_at_all_is_cut(world: World) -> None:
    async with raw_socket(world) as (_, writer):
        writer.transport.pause_reading()
        (connection,) = world.gateway.hub.connections
        for _ in range(40):
            await world.push("raw", *("x" * 30_000 for _ in range(8)))
        assert connection.state.value == "lagging"
        assert connection.unsent_bytes < 512 * 1024
        connection.begin_close(1012, "restart")
        async with asyncio.timeout(12):
            while world.gateway.hub.connections:
                await asyncio.sleep(0.05)  # the close time-out is real


async def test_a_peer_that_vanishes_leaves_nothing(world: World) -> None:
    async with raw_socket(world) as (_, writer):
        writer.transport.abort()
        assert await world.is_empty()
    assert world.gateway.measures.closes == {"lost": 1}


def ours() -> list[Any]:
    """What a connection is made of."""
    kinds = (Connection, LocalSession, RelayWebSocket, Visit, WebSocketLink)
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, kinds)]


def count_others(known: list[Any]) -> Counter[str]:
    """Of what a connection is made of: how many there are beside these. Names only: who keeps an object would see it
    for ever, and one may be there for a moment yet, e.g. in a slot of the heartbeat wheel.
    """
    idents = {id(thing) for thing in known}
    return Counter(type(thing).__name__ for thing in ours() if id(thing) not in idents)


async def test_waves_of_clients_leave_no_object(world: World) -> None:
    """Failure catalogue A10: whatever way they end."""

    async def comes_and_goes(number: int) -> None:
        path = f"/v1/sessions/s{number % 9}/ws?client=c{number}"
        ws = await world.http.ws_connect(world.url + path)
        await ws.receive()
        if number % 3:
            await ws.close()
        else:
            ws._response.connection.transport.abort()

    before = ours()  # of other tests; kept, so that no identity is used twice
    for _ in range(3):
        await asyncio.gather(*(comes_and_goes(number) for number in range(100)))
        await asyncio.gather(*(world.ask("/relay") for _ in range(50)))
        assert await world.is_empty()
    deadline = time.monotonic() + 10
    while (left := count_others(before)) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)  # the sockets' ends are on their way

    assert not left
    assert world.gateway.measures.connects["accepted"] == sum(world.gateway.measures.closes.values()) == 300
