"""Readers with the real client libraries, against real gateways."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.dialects.readers import Readers, install


@pytest.fixture(scope="session")
def client_libraries() -> None:
    install()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def readers(client_libraries: None) -> AsyncIterator[Readers]:
    async with Readers() as readers:
        yield readers


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(shared_stage: Stage) -> list[Gateway]:
    """Two, on one server."""
    return await shared_stage.start_gateways(2, shared_stage.server().url)
