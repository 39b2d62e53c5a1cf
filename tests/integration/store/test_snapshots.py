"""What can be rebuilt below the log, and what cannot (G4; design.md 4)."""

import json
from collections.abc import AsyncIterator

import pytest

from gateway.domain.sessions.log_state import Fork
from gateway.domain.wire.payload import make_item
from gateway.settings import RetentionSettings, RunSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import RunStage, code, running
from tests.integration.store.stage import data, delta, run_end, run_start, thinking

SMALL = Settings(
    retention=RetentionSettings(max_messages=100),
    runs=RunSettings(text_bytes=1_024, session_text_bytes=4_096),
)


@pytest.fixture
async def runs(shared_server: Server) -> AsyncIterator[RunStage]:
    async with running(shared_server.address, shared_server.admin, SMALL) as stage:
        yield stage


async def push_out(runs: RunStage, keep: int = 0) -> None:
    """Everything but the last `keep` messages leaves the log, pushed by messages of another run."""
    for _ in range(0, 100 - keep, 20):
        await runs.put(*[delta("filler", "") for _ in range(20)])


class TestVoid:
    """Up to where nothing can rebuild the log's beginning."""

    async def test_runs_can_be_rebuilt(self, runs: RunStage) -> None:
        await runs.put(run_start("r"), delta("r", "a"), thinking("r", "b"), code("r", "c"), run_end("r"))
        runs.lose_log()

        assert await runs.void() == 0
        assert (await runs.plan()).log.lost == 5

    @pytest.mark.parametrize("place", [0, 2, 4])
    async def test_what_belongs_to_no_run_cannot(self, runs: RunStage, place: int) -> None:
        items = [delta("r", str(i)) for i in range(4)]
        items.insert(place, data())
        for item in items:
            await runs.put(item)
        runs.lose_log()

        assert await runs.void() == place + 1
        await runs.put(delta("r", "x"))
        assert await runs.void() == place + 1, "the entry says so when the log is there again"

    async def test_a_second_start_a_tool_and_a_delta_with_more_fields_cannot(self, runs: RunStage) -> None:
        for item in (
            run_start("r"),
            make_item({"kind": "run_start", "run": "r", "again": 1}),
            make_item({"kind": "tool", "run": "r", "data": 1}),
            make_item({"kind": "delta", "run": "r", "text": "x", "lang": "fr"}),
        ):
            appended = await runs.put(item)
            await runs.put(delta("r", "y"))
            runs.lose_log()
            assert await runs.void() == (appended.head if item.cls != "s" or b"again" in item.body else 0)

        assert await runs.text() == "yyyxy", "its text counts all the same"

    async def test_it_is_told_by_the_first_entry_that_is_retained(self, runs: RunStage) -> None:
        await runs.put(data(), delta("r", "a"))
        await push_out(runs)
        await runs.put(data())
        plan = await runs.plan()

        assert plan.log.lost == 3
        assert plan.log.void == 1

        for _ in range(99):
            await runs.put(delta("r", "x"))
        plan = await runs.plan()
        assert plan.log.lost == plan.log.head - 100 == 102
        assert plan.log.void == 1, "the data message at 103 is retained still"
        await runs.put(delta("r", "x"))
        assert await runs.void() == 103

    async def test_never_above_what_is_lost(self, runs: RunStage) -> None:
        await runs.put(delta("r", "a"), run_end("r"))
        runs.age_run(301_000)

        assert await runs.void() == 0
        page = await runs.stage.store.page(runs.ref, 0, 1 << 20)
        assert page is not None
        assert page.log.void == 0

    async def test_an_ended_run_s_time_is_over(self, runs: RunStage) -> None:
        await runs.put(delta("r", "a"), run_end("r"), delta("s", "b"))
        runs.lose_log()
        assert await runs.void() == 0

        runs.age_run(301_000)

        assert await runs.void() == 2
        assert [brief.run for brief in (await runs.plan()).runs] == ["s"]
        claimed = await runs.claimed()
        info = await runs.stage.store.info(runs.ref)
        assert info is not None
        assert (claimed.log.void, info.log.void) == (2, 2)

    async def test_dropping_the_oldest_run_raises_it(self, runs: RunStage) -> None:
        await runs.put(delta("r0", "a"), run_end("r0"))
        for place in range(1, 16):
            await runs.put(delta(f"r{place}", "a"))
        runs.lose_log()
        assert await runs.void() == 0

        await runs.put(delta("r16", "a"))

        assert await runs.void() == 2

    @pytest.mark.parametrize(("size", "void"), [(1_023, 0), (1_024, 0), (1_025, 2)])
    async def test_text_past_its_limit_cannot_be_rebuilt(self, runs: RunStage, size: int, void: int) -> None:
        await runs.put(delta("r", "x"))
        await runs.put(delta("r", "y" * (size - 1)))
        runs.lose_log()

        assert await runs.void() == void


class TestPlan:
    async def test_nothing_is_rebuilt_that_the_log_has(self, runs: RunStage) -> None:
        await runs.put(run_start("r"), delta("r", "abc"))

        plan = await runs.plan()

        assert (plan.log.lost, plan.runs, plan.kept) == (0, (), ())

    async def test_a_text_goes_up_to_its_first_frame_in_the_log(self, runs: RunStage) -> None:
        await runs.put(run_start("r"), delta("r", "abc"), thinking("r", "hm"), thinking("r", "!"))
        await push_out(runs, keep=0)
        await runs.put(delta("r", "defg"))
        await runs.put(code("r", "h"))

        plan = await runs.plan()

        [brief] = [brief for brief in plan.runs if brief.run == "r"]
        assert (brief.text_until, brief.text_kept) == (3, 8)
        assert (brief.thinking_until, brief.thinking_kept) == (3, 3)
        assert (brief.is_open, brief.last_seq, brief.end_body) == (True, plan.log.head, b"")
        assert json.loads(brief.start_body) == {"kind": "run_start", "run": "r"}

    async def test_without_a_log_texts_are_whole(self, runs: RunStage) -> None:
        await runs.put(run_start("r"), delta("r", "abc"), run_end("r"))
        await runs.put(delta("s", "é"))
        runs.lose_log()

        first, second = (await runs.plan()).runs

        assert (first.run, first.is_open, first.text_until, json.loads(first.end_body)["reason"]) == (
            "r", False, 3, "complete",
        )  # fmt: skip
        assert (second.run, second.is_open, second.text_until, second.start_body) == ("s", True, 2, b"")

    async def test_the_first_frame_is_found_at_the_far_end(self, runs: RunStage) -> None:
        await runs.put(run_start("r"), delta("r", "abc"))
        await push_out(runs)
        await runs.put(delta("r", "d"))

        [brief] = [brief for brief in (await runs.plan()).runs if brief.run == "r"]

        assert brief.text_until == 3

    async def test_past_the_limit_a_text_is_partial(self, runs: RunStage) -> None:
        await runs.put(delta("r", "x" * 1_000))
        await runs.put(delta("r", "y" * 30))
        runs.lose_log()

        [brief] = (await runs.plan()).runs

        assert (brief.text_until, brief.text_kept) == (1_030, 1_000)

    async def test_a_fork_names_the_lengths_of_the_runs(self, runs: RunStage) -> None:
        await runs.put(delta("r", "abc"), thinking("r", "x"))
        await runs.put(delta("s", "é"), run_end("s"))
        runs.admin.hset(runs.key("meta"), "inc", "f" * 40)

        plan = await runs.plan()

        assert plan.log.forks[-1] == Fork(plan.log.fork, 4, {"r": 3, "s": 2}, {"r": 1})

    async def test_there_is_none_of_a_session_that_is_not_there(self, runs: RunStage) -> None:
        assert await runs.runs.snapshot(runs.ref) is None
        await runs.put(data())
        await runs.stage.store.delete(runs.ref)
        assert await runs.runs.snapshot(runs.ref) is None

    async def test_kept_pushes_and_open_asks_are_part_of_it(self, runs: RunStage) -> None:
        await runs.put(data("before"))
        await runs.stage.offer(data("kept"), number=1, order=None, kept_ms=60_000)
        runs.lose_log()

        plan = await runs.plan()

        assert [item.seq for item in plan.kept] == [2]
        assert json.loads(plan.kept[0].frame)["payload"]["text"] == "kept"
        assert plan.log.void == 1
        assert (await runs.claimed()).kept_from == 2
