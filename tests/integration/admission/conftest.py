"""The loop that gateways run on, and one server for a module."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.resp.servers import Server
from tests.integration.websocket.conftest import pytest_asyncio_loop_factories
from tests.integration.websocket.stage import World, serving

__all__ = ["pytest_asyncio_loop_factories"]


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
