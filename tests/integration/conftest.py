"""The stage of the fault tests. Its end is part of each test: nothing hangs, no gateway logged a crash."""

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from loadtest.stage import Stage


@pytest.fixture
def seed() -> int:
    """Printed with a failure; give it again by FAULT_SEED."""
    chosen = int(os.environ.get("FAULT_SEED") or random.SystemRandom().randrange(2**31))
    print(f"FAULT_SEED={chosen}")  # noqa: T201  pytest shows it where a test fails
    return chosen


@pytest.fixture
async def stage(tmp_path: Path, seed: int) -> AsyncIterator[Stage]:
    async with Stage(tmp_path, seed) as stage:
        yield stage
        problems = await stage.finish()
    assert not problems, "\n".join(problems[:5])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One for all tests of a module that leave it as they found it; each sets `rng` by its own seed."""
    async with Stage(tmp_path_factory.mktemp("stage"), 0) as stage:
        yield stage
        problems = await stage.finish()
    assert not problems, "\n".join(problems[:5])
