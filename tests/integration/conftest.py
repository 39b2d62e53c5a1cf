"""The stage of the fault tests. Its end is part of each test: nothing hangs, no gateway logged a crash."""

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

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
