"""Runs: who writes, how far the input is, leases, ends and cuts (G5, G8; design.md 6)."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.domain.wire.ids import ClientId, RunId
from gateway.ports import (
    Appended,
    AppendRefusal,
    AppendRefused,
    Cut,
    EndedBy,
    Expected,
    Moved,
    RunRefusal,
    RunRefused,
    RunWriter,
    Seen,
)
from gateway.settings import RunSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import GATEWAY, RunStage, running
from tests.integration.store.stage import Ears, data, delta, run_end, run_start, thinking

RUN = RunId("r")


@pytest.fixture
async def runs(shared_server: Server) -> AsyncIterator[RunStage]:
    async with running(shared_server.address, shared_server.admin) as stage:
        yield stage


class TestWriters:
    async def test_a_run_begins_with_its_start_in_the_log(self, runs: RunStage) -> None:
        writer = (await runs.opened()).writer

        page = await runs.stage.store.page(runs.ref, 0, 1 << 20)

        assert page is not None
        assert (writer.is_new, writer.head, writer.input_offset, writer.last_number, writer.state) == (
            True,
            1,
            0,
            0,
            b"",
        )
        assert [(entry.cls, entry.run) for entry in page.entries] == [(b"s", b"r")]
        info = await runs.info()
        assert (info.is_open, info.epoch, info.gateway, info.first_seq) == (True, writer.epoch, GATEWAY, 1)
        assert json.loads(info.start_body) == {"kind": "run_start", "run": "r"}

    async def test_who_attaches_gets_what_is_in_the_log_and_fences_the_writer_before(self, runs: RunStage) -> None:
        old = await runs.opened()
        await old.append(delta("r", "abc"), thinking("r", "hm"), offset=17)

        new = await runs.opened(may_start=False, gateway=None)

        assert (new.writer.is_new, new.writer.input_offset, new.writer.last_number) == (False, 17, 2)
        assert (new.writer.state, new.writer.text_bytes, new.writer.thinking_bytes) == (b"s\n\0", 3, 2)
        assert await old.append(delta("r", "x"), offset=18) == AppendRefused(AppendRefusal.FENCED)
        assert isinstance(await new.append(delta("r", "d"), offset=18), Appended)
        assert (await runs.info()).input_offset == 18

    async def test_single_tokens_go_on_under_the_epoch_of_an_attach(self, runs: RunStage) -> None:
        """Whoever loads the run knows its epoch and the number that follows, without having attached itself."""
        await (await runs.opened()).append(delta("r", "a"), delta("r", "b"), offset=2)
        attached = await runs.opened(may_start=False)

        number = (await runs.info()).last_number + 1

        assert isinstance(await attached.append(delta("r", "c"), number=number, offset=3, expected=2), Appended)
        assert (await runs.info()).last_number == number

    async def test_a_name_begins_anew_once_its_run_is_not_retained_any_more(self, runs: RunStage) -> None:
        await (await runs.opened()).append(delta("r", "old"), run_end("r"), offset=3)
        runs.age_run(301_000)

        again = await runs.opened()

        assert again.writer.is_new
        assert isinstance(await again.append(delta("r", "new"), offset=3), Appended)
        assert ((await runs.info()).text_bytes, await runs.text()) == (3, "new")

    async def test_who_may_not_start_or_attach_is_refused(self, runs: RunStage) -> None:
        assert await runs.try_open(may_start=False) == RunRefused(RunRefusal.NOT_FOUND)
        await runs.put(data())
        assert await runs.try_open(may_start=False) == RunRefused(RunRefusal.NOT_FOUND)
        await runs.opened()
        assert await runs.try_open(may_attach=False) == RunRefused(RunRefusal.EXISTS)
        ended = await runs.stopped()
        assert await runs.try_open() == RunRefused(RunRefusal.ENDED, ended.end_body)
        await runs.stage.store.delete(runs.ref)
        assert await runs.try_open() == RunRefused(RunRefusal.GONE)

    @pytest.mark.parametrize(("age_ms", "is_good"), [(19_000, True), (20_050, False), (None, False)])
    async def test_a_run_needs_a_due_note_of_the_last_20_seconds(
        self, runs: RunStage, age_ms: int | None, is_good: bool
    ) -> None:
        due_ms = None if age_ms is None else runs.stage.now_ms() - age_ms

        opened = await runs.try_open("one", due_ms=due_ms)
        pushed = await runs.append(delta("two", "x"), due_ms=due_ms)

        assert isinstance(opened, RunWriter) is is_good
        assert isinstance(pushed, Appended) is is_good
        if not is_good:
            assert opened == RunRefused(RunRefusal.DUE_STALE)
            assert pushed == AppendRefused(AppendRefusal.DUE_STALE)
            assert await runs.names() == []
            assert isinstance(await runs.append(delta("two", "x")), Appended), "its number was not consumed"

    async def test_nothing_is_appended_to_a_run_that_is_not_retained_any_more(self, runs: RunStage) -> None:
        writer = await runs.opened()
        for place in range(16):
            await runs.put(delta(f"r{place}", "x"))

        assert await writer.append(delta("r", "x")) == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
        assert "r" not in await runs.names()


class TestProgress:
    async def test_who_lets_go_what_is_held_moves_no_offset_and_is_first_all_the_same(self, runs: RunStage) -> None:
        """Two gateways have the same state: one is given more, the other's timer fires."""
        writer = await runs.opened()
        await writer.append(delta("r", "a"), offset=10)

        flushed = await writer.append(delta("r", "held"), offset=10, expected=10)
        late = await writer.append(delta("r", "held and"), delta("r", " more"), number=2, offset=20, expected=10)

        assert isinstance(flushed, Appended)
        assert late == Moved(10)
        assert (await runs.text(), (await runs.info()).input_offset) == ("aheld", 10)

    @pytest.mark.parametrize("expected", [9, 10, 11])
    async def test_an_offset_is_compared_and_set(self, runs: RunStage, expected: int) -> None:
        writer = await runs.opened()
        await writer.append(delta("r", "a"), offset=10)

        outcome = await writer.append(delta("r", "b"), offset=11, expected=expected)

        if expected == 10:
            assert isinstance(outcome, Appended)
            assert (await runs.info()).input_offset == 11
        else:
            assert outcome == Moved(10)
            assert (await runs.info()).text_bytes == 1

    async def test_the_offset_is_judged_before_the_number(self, runs: RunStage) -> None:
        """Two gateways share the epoch: the second one must not take the first one's answer for its own."""
        one = await runs.opened()
        two_numbers = {"number": 1}
        await one.append(delta("r", "a"), offset=1, expected=0)

        assert await one.append(delta("r", "b"), offset=1, expected=0, **two_numbers) == Moved(1)

    async def test_input_may_go_on_without_a_message(self, runs: RunStage) -> None:
        writer = await runs.opened()
        await writer.append(delta("r", "a"), offset=1)
        runs.age_run(20_000)

        outcome = await writer.append(offset=5, expected=1)

        info = await runs.info()
        assert outcome.results == ()
        assert (info.input_offset, info.last_number, info.text_bytes) == (5, 1, 1)
        assert info.lease_ms > 29_000
        assert await writer.append(offset=6, number=3) == Expected(2)
        assert await writer.append(offset=6, number=1) == Expected(2)
        await runs.stopped()
        assert await writer.append(offset=6) == AppendRefused(AppendRefusal.RUN_ENDED, 0)

    async def test_a_repeat_stores_no_progress(self, runs: RunStage) -> None:
        writer = await runs.opened()
        await writer.append(delta("r", "a"), offset=1)
        await writer.append(delta("r", "b"), offset=2)

        repeated = await writer.append(delta("r", "a"), offset=1, number=1)

        assert repeated.results[0].duplicate
        assert (await runs.info()).input_offset == 2


class TestLeases:
    async def test_a_writer_has_30_seconds_and_pushes_10_minutes(self, runs: RunStage) -> None:
        writer = await runs.opened("written")
        await runs.put(delta("pushed", "x"))
        for run in ("written", "pushed"):
            runs.age_run(20_000, run)
        await writer.append(delta("written", "x"))
        await runs.put(delta("pushed", "x"))

        assert 29_000 < (await runs.info("written")).lease_ms <= 30_000
        assert 599_000 < (await runs.info("pushed")).lease_ms <= 600_000

    async def test_keep_alive_renews_the_writer_s_own(self, runs: RunStage) -> None:
        epoch = (await runs.opened()).writer.epoch
        runs.age_run(20_000)

        assert await runs.runs.keep_alive(runs.ref, RUN, epoch) is None
        assert (await runs.info()).lease_ms > 29_000
        assert await runs.runs.keep_alive(runs.ref, RUN, epoch + 1) == RunRefused(RunRefusal.EXISTS)
        assert await runs.runs.keep_alive(runs.ref, RunId("other"), epoch) == RunRefused(RunRefusal.NOT_FOUND)
        ended = await runs.stopped()
        assert await runs.runs.keep_alive(runs.ref, RUN, epoch) == RunRefused(RunRefusal.ENDED, ended.end_body)


class TestStops:
    async def test_a_stop_ends_the_run_once(self, runs: RunStage) -> None:
        writer = await runs.opened()
        await writer.append(delta("r", "abc"), thinking("r", "hm"))

        first = await runs.stopped(reason=EndedBy.CANCELLED, fields=b',"by":"u1"')
        second = await runs.stopped()

        end = json.loads(first.end_body)
        assert (first.is_new, second.is_new) == (True, False)
        assert (first.end_seq, second.end_seq, second.end_body) == (4, 4, first.end_body)
        assert (end["reason"], end["by"], end["bytes"], end["sha256"]) == ("cancelled", "u1", 3, None)
        assert end["reasoning"]["bytes"] == 2
        assert await writer.append(delta("r", "d")) == AppendRefused(AppendRefusal.RUN_ENDED, 0)
        assert await runs.append(run_start("r")) == AppendRefused(AppendRefusal.RUN_ENDED, 0)
        page = await runs.stage.store.page(runs.ref, 3, 1 << 20)
        assert page is not None
        assert [json.loads(entry.frame)["payload"] for entry in page.entries] == [end]

    async def test_writer_and_client_are_told(self, runs: RunStage, ears: Callable[..., Ears]) -> None:
        heard = ears("gw-a", "gw-b")
        await runs.opened(gateway="gw-b")
        await runs.claimed("c1", "phone", "gw-a")
        heard.heard()

        stopped = await runs.stopped(client="phone", seen=Seen(1, 7))

        key = runs.ref.key.decode()
        notices = [fields for fields in heard.heard() if fields[0] != "1m"]
        assert sorted(notices) == [
            ["1c", key, "phone", "r", "1", "7", "", ""],
            ["1i", key, "r", stopped.end_body.decode()],
        ]
        assert (stopped.writer_gateway, stopped.client_gateways, stopped.gateways) == ("gw-b", ("gw-a",), ("gw-a",))
        assert json.loads(stopped.end_body)["seen"] == {"seq": 1, "at": 7}

    async def test_a_client_s_cut_is_found_at_its_next_claim(self, runs: RunStage) -> None:
        """Also of a run that had ended; the first one stays."""
        writer = await runs.opened()
        await writer.append(delta("r", "abc"))
        await runs.stopped()

        await runs.stopped(client="phone", seen=Seen(2, 1))
        await runs.stopped(client="phone", seen=Seen(2, 3))
        await runs.stopped(client="tv")

        assert (await runs.claimed("c1", "phone")).cuts == (Cut(RUN, Seen(2, 1)),)
        assert (await runs.claimed("c2", "tv")).cuts == (Cut(RUN, None),)
        assert (await runs.claimed("c3", "laptop")).cuts == ()
        page = await runs.stage.store.page(runs.ref, 0, 1)
        assert page is not None
        assert page.cuts == ((ClientId("phone"), Cut(RUN, Seen(2, 1))), (ClientId("tv"), Cut(RUN, None)))

    @pytest.mark.parametrize("clients", [63, 64, 65])
    async def test_64_cuts_of_a_run_are_kept(self, runs: RunStage, clients: int) -> None:
        await runs.opened()
        for place in range(clients):
            await runs.stopped(client=f"c{place}")

        assert len((await runs.claimed("x", "c0")).cuts) == (clients <= 64)
        assert len((await runs.claimed("y", f"c{clients - 1}")).cuts) == 1

    async def test_the_agent_s_item_is_in_the_outbox_when_the_run_ends(self, runs: RunStage) -> None:
        await runs.opened()
        refused = await runs.stop(item=b'{"id":"i"}', due_ms=runs.stage.now_ms() - 20_050)
        await runs.stopped(item=b'{"id":"i"}')
        await runs.stopped(item=b'{"id":"again"}')

        items = await runs.stage.exchange.outbox(runs.ref, 10)

        assert refused == RunRefused(RunRefusal.DUE_STALE)
        assert [item.item for item in items] == [b'{"id":"i"}']

    async def test_what_is_not_there_cannot_be_stopped(self, runs: RunStage) -> None:
        assert await runs.stop() == RunRefused(RunRefusal.NOT_FOUND)
        await runs.put(data())
        assert await runs.stop() == RunRefused(RunRefusal.NOT_FOUND)
        await runs.stage.store.delete(runs.ref)
        assert await runs.stop() == RunRefused(RunRefusal.GONE)


class TestRetained:
    async def test_runs_are_told_in_the_order_in_which_they_began(self, runs: RunStage) -> None:
        for name in ("z", "a", "m"):
            await runs.put(run_start(name))
        await runs.put(delta("z", "x"), run_end("z"))

        infos = await runs.runs.runs(runs.ref)

        assert [(info.run, info.is_open) for info in infos] == [("z", False), ("a", True), ("m", True)]
        assert json.loads(infos[0].end_body)["reason"] == "complete"
        assert await runs.runs.run(runs.ref, RunId("b")) is None

    async def test_an_ended_run_is_told_for_5_minutes(self, runs: RunStage) -> None:
        await runs.put(delta("r", "x"), run_end("r"))
        runs.age_run(299_000)
        assert await runs.names() == ["r"]

        runs.age_run(2_000)

        assert await runs.names() == []
        assert (await runs.opened()).writer.is_new, "its name is free again"
        assert (await runs.info()).text_bytes == 0

    @pytest.mark.parametrize(("size", "is_whole"), [(1_023, True), (1_024, True), (1_025, False)])
    async def test_a_text_is_kept_up_to_its_limit(self, shared_server: Server, size: int, is_whole: bool) -> None:
        settings = Settings(runs=RunSettings(text_bytes=1_024))
        async with running(shared_server.address, shared_server.admin, settings) as runs:
            await runs.put(delta("r", "x" * 1_000), thinking("r", "y" * 1_024))
            await runs.put(delta("r", "é" + "x" * (size - 1_002)))
            await runs.put(delta("r", "z"))

            info = await runs.info()

            assert info.text_bytes == size + 1
            assert info.kept_text_bytes == (size + (size < 1_024) if is_whole else 1_000)
            assert info.kept_thinking_bytes == 1_024
            assert len((await runs.text()).encode()) == info.kept_text_bytes

    @pytest.mark.parametrize(("size", "is_whole"), [(499, True), (500, True), (501, False)])
    async def test_all_texts_together_have_a_limit(self, shared_server: Server, size: int, is_whole: bool) -> None:
        settings = Settings(runs=RunSettings(text_bytes=1_024, session_text_bytes=2_048))
        async with running(shared_server.address, shared_server.admin, settings) as runs:
            await runs.put(delta("one", "x" * 1_000), thinking("one", "y" * 548), run_end("one"))
            await runs.put(delta("two", "x" * size))

            assert (await runs.info("two")).kept_text_bytes == (size if is_whole else 0)

            runs.age_run(301_000, "one")
            await runs.put(delta("three", "x" * 1_024))
            assert (await runs.info("three")).kept_text_bytes == 1_024, "what went made room"

    async def test_what_goes_takes_its_texts_and_its_writer_along(self, runs: RunStage) -> None:
        writer = await runs.opened("r/1")
        await writer.append(delta("r/1", "x"), thinking("r/1", "y"))
        assert runs.admin.exists(runs.key("text:r%2F1"), runs.key("think:r%2F1")) == 2
        await runs.stopped("r/1")
        runs.age_run(301_000, "r/1")

        await runs.put(delta("next", "x"))

        assert runs.admin.exists(runs.key("text:r%2F1"), runs.key("think:r%2F1")) == 0
        fields: Any = runs.admin.hkeys(runs.key("meta"))
        assert [name for name in fields if "r/1" in name] == []

    async def test_delete_removes_texts(self, runs: RunStage) -> None:
        await runs.put(delta("r 1", "x"), thinking("r 1", "y"))

        await runs.stage.store.delete(runs.ref)

        assert runs.admin.keys(runs.key("*").replace("{", "[{]")) == [runs.key("meta")]

    async def test_a_client_is_a_client_whatever_its_name(self, runs: RunStage) -> None:
        await runs.opened()
        await runs.stopped(client="a b")

        assert (await runs.claimed("c", ClientId("a b"))).cuts == (Cut(RUN, None),)


class TestBatches:
    """What one call may mix."""

    async def test_two_runs_never_mix(self, runs: RunStage) -> None:
        await runs.put(delta("a", "1"), data(), delta("b", "2"), thinking("a", "3"), delta("a", "4"), delta("b", "5"))

        assert (await runs.text("a"), await runs.text("b")) == ("14", "25")
        info = await runs.info("a")
        assert (info.text_bytes, info.thinking_bytes, info.first_seq, info.last_seq) == (2, 1, 1, 5)
        assert (await runs.info("b")).last_seq == 6

    @pytest.mark.parametrize("known", [1, 2, 3, 4])
    async def test_what_was_appended_before_counts_once(self, runs: RunStage, known: int) -> None:
        items = [delta("a", "1"), data(), delta("b", "2"), delta("a", "3"), data()]
        await runs.put(*items[:known])

        await runs.put(*items, number=1)

        assert (await runs.text("a"), await runs.text("b")) == ("13", "2")
        assert [(await runs.info(name)).last_seq for name in "ab"] == [4, 3]

    async def test_what_follows_an_end_in_its_call_is_refused_with_it(self, runs: RunStage) -> None:
        refused = await runs.append(delta("a", "1"), run_end("a"), delta("b", "2"), delta("a", "3"))

        assert refused == AppendRefused(AppendRefusal.RUN_ENDED, 3)
        assert await runs.names() == []
        await runs.put(delta("a", "1"), run_end("a"), delta("b", "2"), number=5)
        assert [info.is_open for info in await runs.runs.runs(runs.ref)] == [False, True]
