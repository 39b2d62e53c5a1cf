"""A fleet for the gateways of a test."""

from collections.abc import AsyncIterator

import pytest

from loadtest.stage import Stage
from tests.integration.redis.fleet import Fleet, running_fleet


@pytest.fixture
async def fleet(stage: Stage) -> AsyncIterator[Fleet]:
    async with running_fleet(stage) as fleet:
        yield fleet
