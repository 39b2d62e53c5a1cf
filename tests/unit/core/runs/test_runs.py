"""Unit tests of gateway.core.runs.runs: starting, going on, and what else a run can be asked."""

import asyncio
from collections.abc import Callable
from typing import cast

import pytest

from gateway.core.runs import runs as runs_module
from gateway.core.runs.open_ingest import OpenIngest
from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.run_options import RunOptions, options_of
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import RunId
from gateway.ports.hooks import HookFailed, RunContext
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN, Producer, make_runs, stream
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

RAW = SegmentOptions(SegmentMode.RAW)


@pytest.mark.parametrize(
    "segment",
    [
        SegmentOptions(),
        SegmentOptions(SegmentMode.PATTERN, pattern=r"\n\n", max_bytes=64, first_immediately=False),
        SegmentOptions(tokens=3, max_delay_ms=0),
    ],
)
@pytest.mark.parametrize("dialect", [None, *DialectName])
def test_options_are_read_back_from_the_run_start(dialect: DialectName | None, segment: SegmentOptions) -> None:
    """Whoever goes on cuts as it was begun."""
    options = RunOptions(dialect, segment)

    assert options == options_of(encode_json(options.start_payload("r7")))


@pytest.mark.parametrize(
    "body", [b"{}", b'{"kind":"run_start","run":"r"}', b'{"dialect":"x","segment":{}}', b"nonsense"]
)
def test_a_run_start_of_somebody_else_has_no_options(body: bytes) -> None:
    """It came by a push."""
    assert options_of(body) is None


async def test_a_start_whose_answer_was_lost_is_our_own() -> None:
    """Nobody else holds it and nothing was written: it goes on."""
    store = FakeRuns()
    store.fates = ["lost"]
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        ingest.feed(b'{"text":"x"}\n{"event":"end"}\n')
        report = await ingest.finish()

    assert ("complete", 1) == (report["reason"], store.kinds().count("run_start"))


async def test_a_second_stream_of_a_run_at_one_gateway_ends_the_first() -> None:
    """At once: it is fenced."""
    store = FakeRuns()
    runs = make_runs(store)
    first = Producer(runs, stream(segment=RAW))
    async with first as old:
        old.feed(b'{"text":"one "}\n')
        await settle()
        attached = await runs.attach(REF, RUN)
        was_told = first.is_told
        async with Producer(runs, stream(epoch=attached["epoch"])) as new:
            new.feed(b'{"text":"two"}\n{"event":"end"}\n')
            await new.finish()

        assert was_told
        assert (await old.conclude()).details["reason"] == "epoch"
    assert ("one two", "") == store.texts()
    assert not runs.open


async def test_streams_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """At n they are taken; n + 1 is told to try another gateway."""
    monkeypatch.setattr(runs_module, "MAX_OPEN", 1)
    store = FakeRuns()
    runs = make_runs(store)
    async with Producer(runs, stream()):
        with pytest.raises(RelayError) as caught:
            await runs.begin(stream())

    assert caught.value.code is ErrorCode.BUSY


async def test_end_flushes_what_is_held_and_has_the_digest_of_all() -> None:
    """Of a stream whose producer is gone, by a request of its own."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=SegmentOptions(first_immediately=False))) as ingest:
        ingest.feed(b'{"thinking":"hm"}\n{"text":"part"}\n')
        await ingest.break_off()
    ended = await make_runs(store, "gw-2").end(REF, RUN, EndReason.FAILED, None, "the model is gone")

    assert ("failed", 4, "the model is gone") == (ended["reason"], ended["bytes"], ended["problem"])
    assert store.payloads[-1]["reasoning"]["bytes"] == 2
    assert store.payloads[-1]["sha256"] is not None


class HoldingChain:
    """Filters that hold everything, and fail when they are to give it back if that is `fails`."""

    def __init__(self, held: str, *, fails: bool) -> None:
        self.held = held
        self.fails = fails

    def feed(self, text: str) -> str:
        self.held += text
        return ""

    def flush(self) -> str:
        if self.fails:
            raise HookFailed("words")
        held, self.held = self.held, ""
        return held

    def save(self) -> bytes:
        return b"state:" + self.held.encode()


class Hooks:
    def __init__(self, *, opens: bool = True, fails: bool = False) -> None:
        self.opens = opens
        self.fails = fails

    def open(self, _context: RunContext, state: bytes = b"") -> HoldingChain:
        if not self.opens:
            raise HookFailed("words")
        return HoldingChain(state.removeprefix(b"state:").decode(), fails=self.fails)


async def test_a_hook_that_must_not_fail_and_does_when_a_run_is_opened_is_told() -> None:
    store = FakeRuns()
    with pytest.raises(RelayError) as caught:
        await make_runs(store, hooks=Hooks(opens=False)).begin(stream())

    assert (ErrorCode.UNAVAILABLE, "hook `words` failed") == (caught.value.code, caught.value.message)


async def test_a_hook_that_must_not_fail_and_does_at_the_end_ends_the_run_failed() -> None:
    store = FakeRuns()
    runs = make_runs(store, hooks=Hooks(fails=True))
    async with Producer(runs, stream()) as ingest:
        ingest.feed(b'{"text":"held"}\n')
        await ingest.break_off()
    ended = await runs.end(REF, RUN, EndReason.COMPLETE, None, None)

    assert ("failed", "hook `words` failed") == (ended["reason"], ended["problem"])
    assert store.payloads[-1]["reason"] == "failed"


async def test_what_a_filter_held_when_its_gateway_died_is_not_lost() -> None:
    """Nothing more is fed: the producer only ends the run."""
    store = FakeRuns()
    async with Producer(make_runs(store, hooks=Hooks(fails=True)), stream()) as ingest:
        ingest.feed(b'{"text":"held"}\n')
        await ingest.break_off()
    await make_runs(store, "gw-2", hooks=Hooks()).end(REF, RUN, EndReason.COMPLETE, None, None)

    assert ("held", "") == store.texts()


async def test_a_handler_that_fails_leaves_no_task() -> None:
    """Whatever happens inside `holding`."""
    store = FakeRuns()
    runs = make_runs(store)
    request = stream()
    ingest = await runs.begin(request)
    with pytest.raises(KeyError), runs.holding(ingest, request):
        raise KeyError("a bug")
    await settle()

    assert not [task for task in asyncio.all_tasks() if task.get_name() == "run-appends"]


class Leaving:
    """Of an open ingest what a drain asks of it."""

    def __init__(self, runs: runs_module.Runs, number: int) -> None:
        self._end: Callable[[], object] = lambda: runs.open.pop((REF.key, RunId(str(number))), None)
        self.told_at: float | None = None
        runs.open[REF.key, RunId(str(number))] = runs_module.HeldIngest(cast("OpenIngest", self), stream())

    def retire(self) -> None:
        if self.told_at is None:
            self.told_at = asyncio.get_running_loop().time()
            self._end()


@pytest.mark.parametrize(("count", "spread_seconds", "pause_seconds"), [(5, 10, 0.02), (500, 5, 0.01), (3, 0, 0)])
async def test_a_drain_sends_producers_away_one_after_the_other(
    count: int, spread_seconds: float, pause_seconds: float
) -> None:
    """Each attaches elsewhere at once: all in one moment would hold up the readers of the others."""
    runs = make_runs(FakeRuns())
    leaving = [Leaving(runs, number) for number in range(count)]
    began_at = asyncio.get_running_loop().time()

    await runs.drain(20, spread_seconds)

    expected = [began_at + number * pause_seconds for number in range(count)]
    assert [it.told_at for it in leaving] == pytest.approx(expected, abs=0.001)


async def test_a_second_drain_without_time_overtakes_the_first() -> None:
    runs = make_runs(FakeRuns())
    leaving = [Leaving(runs, number) for number in range(100)]
    draining = asyncio.ensure_future(runs.drain(20, 10))
    await settle()
    began_at = asyncio.get_running_loop().time()

    await runs.drain(20, 0)

    assert {it.told_at for it in leaving} == {began_at}
    draining.cancel()


async def test_a_drain_that_is_taken_back_sends_nobody_else_away() -> None:
    runs = make_runs(FakeRuns())
    leaving = [Leaving(runs, number) for number in range(100)]
    draining = asyncio.ensure_future(runs.drain(20, 10))
    await settle()

    runs.reopen()
    await asyncio.wait_for(draining, 1)  # not its whole deadline, with a warning at the end
    await asyncio.sleep(20)

    assert [it.told_at is None for it in leaving] == [False] + 99 * [True]
