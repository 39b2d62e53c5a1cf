"""More open runs than a session retains: none of them is forgotten without an end (G8)."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.ports import Appended, AppendRefusal, AppendRefused, ItemResult, Order
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import GATEWAY, RunStage, running
from tests.integration.store.stage import Ears, data, delta, run_end


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


class TestPushed:
    """A run that comes by pushes begins: the same."""

    async def test_by_append(self, runs: RunStage, ears: Callable[..., Ears]) -> None:
        """Its number, its place in the log and its text are its own all the same, and the next ones follow."""
        heard = ears(GATEWAY)
        writers = [await runs.opened(f"r{place}") for place in range(16)]
        await writers[0].append(delta("r0", "x"))

        appended = await runs.put(data("1"), delta("new", "a"), delta("new", "b"), number=1)
        after = await runs.put(delta("new", "c"), number=4)
        again = await runs.put(data("1"), delta("new", "a"), number=1)

        assert [result.seq for result in (*appended.results, *after.results)] == [19, 20, 21, 22]
        assert again.results == (ItemResult(19, True), ItemResult(20, True))
        ends = [payload for payload in runs.stage.payloads() if payload["kind"] == "run_end"]
        assert [(end["run"], end["reason"], end["bytes"]) for end in ends] == [("r1", "abandoned", 0)]
        assert runs.stage.texts()[-5:] == ["run_end", "1", "a", "b", "c"]
        assert await runs.text("new") == "abc"
        assert "r1" not in await runs.names()
        [notice] = [fields for fields in heard.heard() if fields[0] == "1i"]
        assert (notice[2], json.loads(notice[3])) == ("r1", ends[0])

    @pytest.mark.parametrize("order", [Order.REORDER, None])
    async def test_by_offer(self, runs: RunStage, order: Order | None) -> None:
        """In an order, or kept."""
        for place in range(16):
            await runs.opened(f"r{place}")
        more: dict[str, Any] = {"order": order} | ({} if order else {"kept_ms": 60_000})

        outcome = await runs.stage.offer(delta("new", "a"), delta("new", "b"), number=1, **more)

        assert isinstance(outcome, Appended)
        assert [result.seq for result in outcome.results] == [18, 19]
        assert runs.stage.texts()[-3:] == ["run_end", "a", "b"]
        assert runs.stage.payloads()[-3]["run"] == "r0"

    async def test_at_its_turn_in_the_window(self, runs: RunStage) -> None:
        stage = runs.stage
        await stage.offered("1", number=1)
        await stage.offer(delta("new", "a"), number=3)
        for place in range(16):
            await runs.opened(f"r{place}")

        await stage.offered("2", number=2)

        assert stage.texts()[-3:] == ["2", "run_end", "a"]
        assert "r0" not in await runs.names()

    async def test_a_run_of_the_same_call_is_not_ended_for_it(self, runs: RunStage) -> None:
        """Though it was silent for longest."""
        for place in range(16):
            await runs.put(delta(f"r{place}", "x"))

        appended = await runs.put(delta("new", "a"), delta("r0", "y"))

        assert [result.seq for result in appended.results] == [18, 19]
        assert await runs.text("r0") == "xy"
        assert [payload["run"] for payload in runs.stage.payloads() if payload["kind"] == "run_end"] == ["r1"]

    async def test_none_ends_where_the_call_ends_one_before(self, runs: RunStage) -> None:
        for place in range(16):
            await runs.put(delta(f"r{place}", "x"))

        await runs.put(run_end("r5"), delta("new", "a"))

        assert [payload["run"] for payload in runs.stage.payloads() if payload["kind"] == "run_end"] == ["r5"]

    @pytest.mark.parametrize("count", [15, 16])
    async def test_as_many_as_begin(self, runs: RunStage, count: int) -> None:
        """The runs of one call end as many as are in their way, those silent for longest first."""
        for place in range(16):
            await runs.put(delta(f"r{place}", "x"))

        await runs.put(*[delta(f"n{place}", "y") for place in range(count)])

        ends = [payload["run"] for payload in runs.stage.payloads() if payload["kind"] == "run_end"]
        assert ends == [f"r{place}" for place in range(count)]
        assert len(await runs.names()) == 16

    @pytest.mark.parametrize("is_offered", [False, True])
    async def test_more_at_once_than_are_retained_are_refused(self, runs: RunStage, is_offered: bool) -> None:
        """One of them would be forgotten; nothing is written, and the numbers are consumed."""
        await runs.opened("writer's")
        items = [data("first"), *(delta(f"n{place}", "y") for place in range(17))]

        outcome = await (
            runs.stage.offer(*items, number=1, order=None, kept_ms=60_000) if is_offered else runs.append(*items)
        )
        again: Any = await (
            runs.stage.offer(*items, number=1, order=None) if is_offered else runs.append(*items, number=1)
        )

        assert outcome == AppendRefused(AppendRefusal.TOO_MANY_RUNS, 17)
        assert again.results == (ItemResult(None, False, "too_many_runs"),) * 18
        assert await runs.names() == ["writer's"]

    async def test_any_number_one_after_the_other(self, runs: RunStage) -> None:
        """Each ends before the next one begins: none is in another's way."""
        items = [item for place in range(40) for item in (delta(f"n{place}", "y"), run_end(f"n{place}"))]

        appended = await runs.put(*items)

        assert [result.seq for result in appended.results] == list(range(1, 81))
        assert await runs.names() == [f"n{place}" for place in range(24, 40)]
