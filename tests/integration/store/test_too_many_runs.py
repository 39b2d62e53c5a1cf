"""More open runs than a session retains: none of them is forgotten without an end (G8)."""

import json
from collections.abc import AsyncIterator, Callable

import pytest

from gateway.ports import AppendRefusal, AppendRefused
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import GATEWAY, RunStage, running
from tests.integration.store.stage import Ears, delta


@pytest.fixture
async def runs(shared_server: Server) -> AsyncIterator[RunStage]:
    async with running(shared_server.address, shared_server.admin) as stage:
        yield stage


async def test_the_one_silent_for_longest_ends_before_it_is_forgotten(
    runs: RunStage, ears: Callable[..., Ears]
) -> None:
    """Who reads it would wait for ever; its writer is told at once."""
    heard = ears(GATEWAY)
    writers = [await runs.opened(f"r{place}") for place in range(16)]
    await writers[0].append(delta("r0", "x"))

    await runs.opened("one more")

    [end] = [payload for payload in runs.stage.payloads() if payload["kind"] == "run_end"]
    assert (end["run"], end["reason"]) == ("r1", "abandoned")
    assert await runs.names() == ["r0", *(f"r{place}" for place in range(2, 16)), "one more"]
    [notice] = [fields for fields in heard.heard() if fields[0] == "1i"]
    assert (notice[2], json.loads(notice[3])) == ("r1", end)
    assert await writers[1].append(delta("r1", "x")) == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)


async def test_none_ends_as_long_as_others_have_ended(runs: RunStage) -> None:
    for place in range(16):
        await runs.opened(f"r{place}")
    await runs.stopped("r7")

    await runs.opened("one more")

    assert [payload["run"] for payload in runs.stage.payloads() if payload["kind"] == "run_end"] == ["r7"]
    assert "r7" not in await runs.names()
