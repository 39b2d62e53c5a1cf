"""Unit tests of gateway.core.runs.open_ingest: what is in the log, and what the producer is told, at each end."""

import asyncio
import gc
import hashlib
import json

import pytest

from gateway.core.runs.open_ingest import FULL_BYTES
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import AppendRequest, EndedBy, StopRun
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import DEADLINE_SECONDS, REF, RUN, Producer, make_runs, stream
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

RAW = SegmentOptions(SegmentMode.RAW)
END = b'{"event":"end","finish_reason":"stop","usage":{"tokens":3}}\n'


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


async def test_a_stream_becomes_a_run() -> None:
    """run_start, its text, run_end with counts and digest; the producer is told the same."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream()) as ingest:
        ingest.feed(b'{"thinking":"hm"}\n' + line("Hello ") + line("wörld."))
        ingest.feed(END)
        report = await ingest.finish()

    assert ("Hello wörld.", "hm") == store.texts()
    assert ["run_start", "thinking", "thinking", "delta", "delta", "run_end"] == store.kinds()
    digest = hashlib.sha256("Hello wörld.".encode()).hexdigest()
    end = store.payloads[-1]
    assert (digest, 13, 12, "stop") == (end["sha256"], end["bytes"], end["code_points"], end["finish_reason"])
    assert ("complete", digest, len(store.payloads)) == (report["reason"], report["sha256"], report["seq"])


async def test_what_is_held_goes_after_its_delay() -> None:
    """One timer; nobody has to send anything."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=SegmentOptions(first_immediately=False))) as ingest:
        ingest.feed(line("held"))
        await settle()
        before = store.kinds()
        await asyncio.sleep(0.07)

        assert ["run_start"] == before
        assert ("held", "") == store.texts()
        await ingest.break_off()


async def test_items_that_gather_travel_in_one_append() -> None:
    """One call is in flight; what comes meanwhile waits for the next one."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        for number in range(5):
            ingest.feed(line(f"{number} "))
        await settle()
        await ingest.break_off()

    assert ("0 1 2 3 4 ", "") == store.texts()
    assert len(store.appends) <= 2


async def test_reading_stops_while_redis_does_not_take_it() -> None:
    """Bounded memory; it goes on by itself."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        store.is_down = True
        while not ingest.is_full:
            ingest.feed(line("x" * 4_000))
        waiting = asyncio.ensure_future(ingest.room())
        await asyncio.sleep(0.1)
        was_waiting = not waiting.done()
        store.is_down = False
        await waiting
        await ingest.break_off()

        assert was_waiting
        assert FULL_BYTES < len(store.texts()[0]) < 2 * FULL_BYTES


async def test_a_lost_answer_repeats_nothing() -> None:
    """The same numbers again."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        store.fates = ["lost", "down", "lost"]
        ingest.feed(line("once"))
        ingest.feed(END)
        await ingest.finish()

    assert ("once", "") == store.texts()


async def test_an_append_that_was_retried_leaves_nothing_for_the_garbage_collector() -> None:
    """It would keep its text until a pass over everything (app/garbage.py)."""
    store = FakeRuns()
    of_others = {id(each): each for each in gc.get_objects() if isinstance(each, AppendRequest)}
    gc.disable()
    try:
        async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
            store.fates = ["down", "down", "down"]
            ingest.feed(line("once"))
            ingest.feed(END)
            await ingest.finish()
        store.appends.clear()
        del ingest

        left = [each for each in gc.get_objects() if isinstance(each, AppendRequest) and id(each) not in of_others]
        assert left == []
    finally:
        gc.enable()


async def test_redis_away_is_told_with_the_place_to_go_on() -> None:
    """After the deadline; nothing is silently dropped."""
    store = FakeRuns()
    producer = Producer(make_runs(store), stream(segment=RAW))
    async with producer as ingest:
        ingest.feed(line("in the log"))
        await settle()
        offset = store.runs_by_name[RUN].offset
        store.is_down = True
        ingest.feed(line("not in the log"))
        await asyncio.sleep(DEADLINE_SECONDS + 0.5)

        assert producer.is_told
        error = await ingest.conclude()
        assert error.code is ErrorCode.UNAVAILABLE
        assert (offset, "not_written") == (error.details["offset"], error.details["outcome"])


async def test_an_interrupt_ends_a_silent_producer_at_once() -> None:
    """With the reason and what the user had seen; what was under way is not appended after it."""
    store = FakeRuns()
    runs = make_runs(store)
    producer = Producer(runs, stream(segment=RAW))
    async with producer as ingest:
        ingest.feed(line("so far"))
        await settle()
        stopped = store.stop(StopRun(REF, RUN, EndedBy.INTERRUPTED, fields=b',"seen":{"seq":2,"at":3}'))
        runs.on_stopped([bytes(REF.key), RUN.encode(), stopped.end_body])
        ingest.feed(line("too late"))

        assert producer.is_told
        error = await ingest.conclude()
        assert error.code is ErrorCode.FENCED
        assert ("interrupted", {"seq": 2, "at": 3}) == (error.details["reason"], error.details["seen"])
    await settle()
    assert ("so far", "") == store.texts()


async def test_an_end_without_notice_is_found_by_the_next_append() -> None:
    """The notice was lost; the log refuses, and the producer is told how the run ended."""
    store = FakeRuns()
    producer = Producer(make_runs(store), stream(segment=RAW))
    async with producer as ingest:
        store.stop(StopRun(REF, RUN, EndedBy.CANCELLED))
        ingest.feed(line("x"))
        await settle()

        assert producer.is_told
        assert (await ingest.conclude()).details["reason"] == "cancelled"


async def test_a_refusal_that_was_not_heard_is_no_success() -> None:
    """Interrupted, and the answer to the last append is lost: the repeat is told of numbers that were consumed."""
    store = FakeRuns()
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        store.stop(StopRun(REF, RUN, EndedBy.INTERRUPTED))
        store.fates = ["lost"]
        ingest.feed(line("x"))
        ingest.feed(END)
        with pytest.raises(RelayError) as caught:
            await ingest.finish()

    assert (ErrorCode.FENCED, "interrupted") == (caught.value.code, caught.value.details["reason"])


async def test_a_new_writer_fences_the_old_one() -> None:
    """At another gateway; the old one's next text is refused."""
    store = FakeRuns()
    old = Producer(make_runs(store, "gw-1"), stream(segment=RAW))
    async with old as ingest:
        ingest.feed(line("one "))
        await settle()
        other = make_runs(store, "gw-2")
        attached = await other.attach(REF, RUN)
        async with Producer(other, stream(epoch=attached["epoch"], offset=attached["offset"])) as second:
            ingest.feed(line("never "))
            await settle()
            second.feed(line("two"))
            second.feed(END)
            report = await second.finish()

        error = await ingest.conclude()
        assert (ErrorCode.FENCED, "epoch") == (error.code, error.details["reason"])
    assert ("one two", "") == store.texts()
    assert hashlib.sha256(b"one two").hexdigest() == report["sha256"]


async def test_lost_writes_end_the_request_with_the_place_in_the_log() -> None:
    """The gateway never bridges them by itself."""
    store = FakeRuns()
    producer = Producer(make_runs(store), stream(segment=RAW))
    async with producer as ingest:
        ingest.feed(line("one"))
        await settle()
        run = store.runs_by_name[RUN]
        run.last_number, run.offset = 0, 0
        ingest.feed(line("two"))
        await settle()

        error = await ingest.conclude()
        assert (ErrorCode.LOST_WRITES, 0, 0) == (error.code, error.details["offset"], error.details["last_number"])


async def test_flushall_is_told() -> None:
    """The producer starts the run again."""
    store = FakeRuns()
    producer = Producer(make_runs(store), stream(segment=RAW))
    async with producer as ingest:
        store.forget()
        ingest.feed(line("x"))
        await settle()

        assert (await ingest.conclude()).code is ErrorCode.PRODUCER_UNKNOWN


async def test_a_drain_appends_what_was_read_and_says_where_to_go_on() -> None:
    """Then nothing is left here."""
    store = FakeRuns()
    runs = make_runs(store)
    producer = Producer(runs, stream(segment=SegmentOptions(first_immediately=False)))
    async with producer as ingest:
        data = line("held back")
        ingest.feed(data)
        draining = asyncio.ensure_future(runs.drain(5, 0))
        await settle()

        assert producer.is_told
        error = await ingest.conclude()
        assert (ErrorCode.DRAINING, len(data), 9) == (error.code, error.details["offset"], error.details["bytes"])
    await draining
    assert ("held back", "") == store.texts()
    with pytest.raises(RelayError, match="about to stop"):
        await runs.begin(stream())


async def test_a_body_that_breaks_off_leaves_the_run_open() -> None:
    """What was read is in the log, and the next writer goes on from there."""
    store = FakeRuns()
    data = line("first ") + line("second")
    async with Producer(make_runs(store), stream(segment=SegmentOptions(first_immediately=False))) as ingest:
        ingest.feed(data[:-4])
        await ingest.break_off()
    runs = make_runs(store, "gw-2")
    attached = await runs.attach(REF, RUN)
    async with Producer(runs, stream(epoch=attached["epoch"], offset=attached["offset"])) as second:
        second.feed(data[attached["offset"] :])
        second.feed(END)
        await second.finish()

    assert ("first second", "") == store.texts()
    assert store.kinds().count("run_end") == 1


async def test_a_body_may_begin_before_what_is_in_the_log() -> None:
    """The overlap is skipped."""
    store = FakeRuns()
    data = line("one ") + line("two ") + line("three")
    async with Producer(make_runs(store), stream(segment=RAW)) as ingest:
        ingest.feed(data[:30])
        await ingest.break_off()
    runs = make_runs(store, "gw-2")
    attached = await runs.attach(REF, RUN)
    async with Producer(runs, stream(epoch=attached["epoch"], offset=0)) as second:
        second.feed(data[:7])
        second.feed(data[7:])
        second.feed(END)
        await second.finish()

    assert ("one two three", "") == store.texts()


async def test_an_unforeseen_failure_of_the_appends_is_told() -> None:
    """Never an answer as if all was well."""
    store = FakeRuns()
    producer = Producer(make_runs(store), stream(segment=RAW))
    async with producer as ingest:

        def fail() -> None:
            raise KeyError("a bug")

        store.on_append = fail
        ingest.feed(line("x"))
        await settle()

        assert producer.is_told
        with pytest.raises(RelayError) as caught:
            await ingest.finish()
        assert caught.value.code is ErrorCode.INTERNAL


async def test_past_the_cap_the_digest_is_null() -> None:
    """Counts of bytes stay."""
    store = FakeRuns()
    async with Producer(make_runs(store, text_bytes=1_024), stream(segment=RAW)) as ingest:
        ingest.feed(line("x" * 1_025))
        ingest.feed(END)
        report = await ingest.finish()

    assert (1_025, None, None) == (report["bytes"], report["sha256"], report["code_points"])
