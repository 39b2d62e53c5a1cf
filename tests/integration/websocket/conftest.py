"""A gateway over a real server, on the loop that gateways run on: its transports differ where a peer vanishes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, serving


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(Path(tmp_path_factory.mktemp("valkey")))
    server.start()
    yield server
    server.end()


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    async with serving(server) as world:
        yield world


@pytest.fixture
async def guarded(server: Server) -> AsyncIterator[World]:
    async with serving(server, auth=JWT, server={"auth_timeout_seconds": 0.3, "query_token": True}) as world:
        yield world
