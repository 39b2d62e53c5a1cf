"""The text of a run that has a writer is the writer's alone: what others push into it is refused (A1, G5)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.wire.entry import Item
from gateway.domain.wire.payload import make_item
from gateway.ports import Appended, AppendRefusal, AppendRefused, ItemResult, Order
from gateway.settings import OrderSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import RunStage, code, running
from tests.integration.store.stage import data, delta, run_end, run_start, thinking

REFUSED = ItemResult(None, False, "has_writer")


@pytest.fixture
async def runs(shared_server: Server) -> AsyncIterator[RunStage]:
    settings = Settings(order=OrderSettings(window_ms=5_000))
    async with running(shared_server.address, shared_server.admin, settings) as stage:
        yield stage


def tool(run: str) -> Item:
    return make_item({"kind": "tool", "run": run, "name": "search"})


def noted(kind: str, run: str) -> Item:
    """With a field of its own: it is not merged, but it is text all the same."""
    return make_item({"kind": kind, "run": run, "text": "x", "note": "mine"})


TEXTS = [
    delta("r", "x"),
    thinking("r", "x"),
    code("r", "x"),
    noted("delta", "r"),
    noted("thinking", "r"),
    run_start("r"),
    run_end("r"),
]


@pytest.mark.parametrize("kept_ms", [None, 60_000])
@pytest.mark.parametrize("item", TEXTS)
async def test_nothing_that_is_text_or_its_borders_is_taken_from_others(
    runs: RunStage, item: Item, kept_ms: int | None
) -> None:
    """The number is consumed, the text stays the writer's, and the writer goes on."""
    writer = await runs.opened()
    await writer.append(delta("r", "one "))

    outcome = await runs.append(data("before"), item, number=1, kept_ms=kept_ms)
    again = await runs.put(data("before"), item, number=1)
    await writer.append(delta("r", "two"))
    await runs.put(data("after"), number=3)

    assert outcome == AppendRefused(AppendRefusal.HAS_WRITER, 1)
    assert again.results == (REFUSED,) * 2
    assert await runs.text() == "one two"
    assert runs.stage.texts() == ["run_start", "one ", "two", "after"]


async def test_what_is_no_text_may_name_the_run(runs: RunStage) -> None:
    await runs.opened()
    about = make_item({"kind": "data", "run": "r", "text": "x"})

    appended = await runs.put(tool("r"), about)
    kept = await runs.put(tool("r"), about, kept_ms=60_000)

    assert [result.seq for result in (*appended.results, *kept.results)] == [2, 3, 4, 5]


async def test_the_batch_is_refused_whichever_run_has_the_writer(runs: RunStage) -> None:
    """Named later in it, after one that comes by pushes; nothing of the batch is written."""
    await runs.opened("w")

    outcome = await runs.append(delta("p", "a"), tool("w"), delta("p", "b"), delta("w", "c"))

    assert outcome == AppendRefused(AppendRefusal.HAS_WRITER, 3)
    assert await runs.names() == ["w"]


async def test_tool_data_of_others_before_a_pushed_run_s_text(runs: RunStage) -> None:
    """The run that has a writer does not make the other one refused."""
    await runs.opened("w")

    await runs.put(tool("w"), delta("p", "a"), tool("w"), delta("p", "b"))

    assert await runs.text("p") == "ab"


async def test_who_pushed_a_run_is_refused_from_when_a_writer_took_it(runs: RunStage) -> None:
    await runs.put(delta("r", "pushed, "))
    writer = await runs.opened()

    outcome = await runs.append(delta("r", "no"))
    await writer.append(delta("r", "written"))

    assert outcome == AppendRefused(AppendRefusal.HAS_WRITER, 0)
    assert await runs.text() == "pushed, written"


async def test_a_replaced_writer_is_fenced_and_not_called_a_stranger(runs: RunStage) -> None:
    old = await runs.opened()
    await runs.opened()

    assert await old.append(delta("r", "x")) == AppendRefused(AppendRefusal.FENCED)


async def test_a_run_that_ended_says_so(runs: RunStage) -> None:
    await runs.opened()
    await runs.stopped()

    assert await runs.append(delta("r", "x")) == AppendRefused(AppendRefusal.RUN_ENDED, 0)
    assert await runs.append(tool("r"), number=2) == AppendRefused(AppendRefusal.RUN_ENDED, 0)


class TestWindow:
    @pytest.mark.parametrize("item", TEXTS)
    async def test_it_is_refused_at_its_turn(self, runs: RunStage, item: Item) -> None:
        await runs.opened()
        stage = runs.stage

        outcome = await stage.offer(data("1"), item, number=1)

        assert outcome == AppendRefused(AppendRefusal.HAS_WRITER, 1)
        assert (await stage.offered("1", number=1)).results == (REFUSED,)
        assert (await stage.offered("3", number=3)).results == (ItemResult(2, False),)

    async def test_what_waits_is_not_refused_with_a_batch_that_names_it_again(self, runs: RunStage) -> None:
        """It was promised its turn."""
        await runs.opened()
        stage = runs.stage
        await stage.offered("2", number=2)

        outcome = await stage.offer(delta("r", "x"), data("2"), number=1)

        assert outcome == AppendRefused(AppendRefusal.HAS_WRITER, 0)
        assert (await stage.offered("2", number=2)).results == (ItemResult(2, True),)
        assert stage.texts() == ["run_start", "2"]

    async def test_a_message_that_waited_while_a_writer_took_the_run(self, runs: RunStage) -> None:
        stage = runs.stage
        await stage.offer(delta("r", "pushed, "), number=1)
        await stage.offer(delta("r", "waited"), number=3)
        writer = await runs.opened()

        await stage.offered("2", number=2)
        again: Any = await stage.offer(delta("r", "waited"), number=3)
        await writer.append(delta("r", "written"))

        assert again.results == (REFUSED,)
        assert await runs.text() == "pushed, written"
        assert stage.texts() == ["pushed, ", "2", "written"]

    @pytest.mark.parametrize("item", [delta("r", "x"), thinking("r", "x")])
    async def test_a_late_one_is_refused(self, runs: RunStage, item: Item) -> None:
        """Its hole was given up; `late` would have made a message of its own of it."""
        stage = runs.stage
        await stage.offered("2", number=2)
        stage.let_wait(6_000)
        await stage.offered("3", number=3)
        await runs.opened()

        assert await stage.offer(item, number=1) == AppendRefused(AppendRefusal.HAS_WRITER, 0)
        assert stage.texts() == ["2", "3", "run_start"]

    async def test_tool_data_is_taken(self, runs: RunStage) -> None:
        await runs.opened()

        outcome = await runs.stage.offer(tool("r"), number=1, order=Order.CONTIGUOUS)

        assert isinstance(outcome, Appended)
        assert outcome.results == (ItemResult(2, False),)
