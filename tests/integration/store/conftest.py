"""One server for the tests that leave it as it is; each test has a session of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.resp.servers import Server
from tests.integration.store.stage import Ears, Stage, keys_without_end, staged


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("store"), "--appendonly", "no")
    server.start()
    yield server
    server.end()


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[Stage]:
    async with staged(shared_server.address, shared_server.admin) as stage:
        yield stage
    assert keys_without_end(shared_server.admin, "rr:{") == []


@pytest.fixture
def ears(shared_server: Server) -> Iterator[Any]:
    """Opens ears on the shared server."""
    opened: list[Ears] = []

    def listen(*gateways: str) -> Ears:
        opened.append(Ears(shared_server.admin, *gateways))
        return opened[-1]

    yield listen
    for one in opened:
        one.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, with persistence."""
    server = Server(tmp_path)
    server.start()
    yield server
    server.end()
