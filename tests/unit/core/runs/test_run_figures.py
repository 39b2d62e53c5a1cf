"""What operators and readers see of a run's tempo: rhythm, first token, open and recent runs."""

import asyncio
import json
import random
from typing import Any, cast

import pytest

from gateway.core.runs.keeper import Keeper
from gateway.core.runs.runs import MAX_RECENT, Runs
from gateway.core.runs.token_runs import MAX_TOKEN_RUNS, TokenRuns
from gateway.core.runs.tokens import Tokens
from gateway.domain.measures import Measures
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.bus import BusKind, decode_fields
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import RunId
from gateway.ports import EndedBy, StopRun
from tests.unit.core.fake_bus import FakeBus
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN, Producer, make_parts, stream, tokens

pytestmark = pytest.mark.looptime


def make_keeper(store: FakeRuns, **settings: Any) -> tuple[Keeper, Runs, FakeBus]:
    parts, bus = make_parts(store, **settings), FakeBus()
    runs = Runs(parts)
    return Keeper(parts, runs, cast("Any", None), bus, shards=4, wall_clock=lambda: 1.8e9), runs, bus


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


def rhythms(bus: FakeBus) -> list[dict[str, Any]]:
    notices = [message for _, message in bus.published if message.startswith(BusKind.RHYTHM.value)]
    return [json.loads(decode_fields(notice)[1]) for notice in notices]


async def test_the_rhythm_is_told_once_a_second_to_who_watches() -> None:
    store = FakeRuns()
    keeper, runs, bus = make_keeper(store)
    async with Producer(runs, stream()) as ingest:
        for _ in range(15):
            ingest.feed(line("x"))
            await asyncio.sleep(0.1)
            keeper.look()
        await ingest.finish()

    told = rhythms(bus)
    assert [(entry["run"], entry["kind"]) for entry in told] == [("r7", "rhythm")]
    assert told[0]["tokens_per_s"] == pytest.approx(10, abs=1)
    assert told[0]["gap_ms"] == pytest.approx(100, abs=10)


async def test_nobody_watches_nothing_is_told() -> None:
    store = FakeRuns()
    store.is_live = False
    keeper, runs, bus = make_keeper(store)
    async with Producer(runs, stream()) as ingest:
        ingest.feed(line("x"))
        await asyncio.sleep(1.5)
        keeper.look()
        await ingest.finish()

    assert not bus.published


async def test_a_run_is_reported_while_it_is_open_and_a_while_after() -> None:
    store = FakeRuns()
    runs = Runs(make_parts(store))
    async with Producer(runs, stream()) as ingest:
        ingest.feed(line("a"))
        await asyncio.sleep(4)
        ingest.feed(line("b") + line("c"))
        (row,) = runs.report()
        assert (row["state"], row["tokens"], row["stalls"]) == ("open", 3, 1)
        assert "ended_seconds" not in row
        await ingest.finish()
    await asyncio.sleep(2)

    (row,) = runs.report()
    assert (row["state"], row["ended_seconds"], row["run"]) == ("incomplete", 2.0, "r7")


async def test_only_so_many_ended_runs_are_remembered() -> None:
    runs = Runs(make_parts(FakeRuns()))
    first = Producer(runs, stream())
    async with first as ingest:
        await ingest.break_off()
    for _ in range(MAX_RECENT):
        first._holding = runs.holding(ingest, first.request)
        first._holding.__enter__()
        first._holding.__exit__(None, None, None)

    assert [row["state"] for row in runs.report()] == ["broken_off"] * MAX_RECENT


async def test_the_first_token_of_who_goes_on_is_not_the_runs() -> None:
    parts = make_parts(FakeRuns())
    runs = Runs(parts)
    async with Producer(runs, stream()) as ingest:
        await asyncio.sleep(0.5)
        ingest.feed(line("a"))
        await ingest.break_off()
    epoch = (await runs.attach(REF, RUN))["epoch"]
    async with Producer(runs, stream(epoch=epoch)) as ingest:
        ingest.feed(line("b"))
        await ingest.finish()

    assert [row["first_token_seconds"] for row in runs.report()] == [None, pytest.approx(0.5, abs=0.01)]
    assert sum(parts.measures.first_token_seconds.counts) == 1


async def test_a_pattern_that_was_given_up_is_counted_once() -> None:
    """Also where another gateway goes on from the state that knows it."""
    parts = make_parts(FakeRuns())
    runs = Runs(parts)
    slow = SegmentOptions(SegmentMode.PATTERN, pattern=r"(?:a|a)*[!?]")
    async with Producer(runs, stream(segment=slow)) as ingest:
        ingest.feed(line("a" * 200))
        ingest.feed(line("\nmore\n"))
        await ingest.break_off()
    epoch = (await runs.attach(REF, RUN))["epoch"]
    async with Producer(runs, stream(epoch=epoch)) as ingest:
        ingest.feed(line("a" * 200 + "\n"))
        await ingest.finish()

    assert parts.measures.pattern_timeouts == 1


class TestTokens:
    """Runs that come by single tokens are seen like streams, at the gateway that took the tokens."""

    async def test_an_open_one_is_reported_and_measured(self) -> None:
        parts = make_parts(FakeRuns())
        runs = Runs(parts)
        gateway = Tokens(parts, runs, random.Random(1))
        await gateway.add(tokens(""))
        await asyncio.sleep(0.5)
        await gateway.add(tokens("hello "))
        await asyncio.sleep(4)
        await gateway.add(tokens("all world", count=2))
        await asyncio.sleep(0.2)  # what is held goes

        (row,) = runs.report()
        assert (row["run"], row["dialect"], row["state"]) == ("r7", None, "open")
        assert (row["tokens"], row["stalls"], row["input_bytes"]) == (3, 1, 15)
        assert row["first_token_seconds"] == pytest.approx(0.5, abs=0.01)
        assert row["is_watched"]
        assert sum(parts.measures.token_gap_seconds.counts) == 1

    async def test_a_run_that_begins_with_a_token_waited_for_none(self) -> None:
        parts = make_parts(FakeRuns())
        runs = Runs(parts)
        await Tokens(parts, runs, random.Random(1)).add(tokens("hello"))

        assert runs.report()[0]["first_token_seconds"] is None
        assert sum(parts.measures.first_token_seconds.counts) == 0

    @pytest.mark.parametrize("is_cancelled", [False, True])
    async def test_one_that_ended_here_is_among_the_recent(self, is_cancelled: bool) -> None:
        parts = make_parts(FakeRuns())
        runs = Runs(parts)
        await Tokens(parts, runs, random.Random(1)).add(tokens("hello"))
        await asyncio.sleep(2)

        if is_cancelled:
            await runs.cancel(REF, RUN, "me", None)
        else:
            await runs.end(REF, RUN, EndReason.COMPLETE, None, None)

        (row,) = runs.report()
        assert (row["state"], row["ended_seconds"]) == ("cancelled" if is_cancelled else "complete", 0.0)
        assert sum(parts.measures.run_seconds.counts) == 1
        assert sum(parts.measures.runs_ended.values()) == 1

    async def test_one_that_was_ended_elsewhere_is_known_by_its_next_token(self) -> None:
        store = FakeRuns()
        parts = make_parts(store)
        runs = Runs(parts)
        gateway = Tokens(parts, runs, random.Random(1))
        await gateway.add(tokens("hello"))
        store.stop(StopRun(REF, RUN, EndedBy.CANCELLED))

        with pytest.raises(RelayError):
            await gateway.add(tokens("more"))

        assert [row["state"] for row in runs.report()] == ["cancelled"]

    async def test_silence_past_the_lease_is_forgotten(self) -> None:
        """It has ended as abandoned, or goes on at another gateway."""
        parts = make_parts(FakeRuns(), lease_seconds=9)
        runs = Runs(parts)
        await Tokens(parts, runs, random.Random(1)).add(tokens("hello"))

        await asyncio.sleep(8.9)
        before = len(runs.report())
        await asyncio.sleep(0.2)

        assert (before, runs.report()) == (1, [])

    async def test_the_rhythm_is_told(self) -> None:
        store = FakeRuns()
        parts, bus = make_parts(store), FakeBus()
        runs = Runs(parts)
        gateway = Tokens(parts, runs, random.Random(1))
        keeper = Keeper(parts, runs, cast("Any", None), bus, shards=4, wall_clock=lambda: 1.8e9)
        for _ in range(15):
            await gateway.add(tokens("x"))
            await asyncio.sleep(0.1)
            keeper.look()

        assert [(entry["run"], entry["kind"]) for entry in rhythms(bus)] == [("r7", "rhythm")]

    def test_so_many_are_kept(self) -> None:
        seen = TokenRuns(Measures(), 30)
        for number in range(MAX_TOKEN_RUNS + 1):
            seen.took(REF, RunId(f"r{number}"), 1, float(number) / 1000, is_new=False)

        assert len(seen) == MAX_TOKEN_RUNS
        assert next(iter(seen)).run == "r1"
