"""The publishing call against gateways over the real core: whatever fails meanwhile, the log has the input once."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.client.publish_stream import StreamPublisher, StreamResult, publish_stream
from gateway.adapters.client.publisher import PublishError
from gateway.adapters.client.settings import BackoffSettings, StreamSettings
from gateway.ports import EndedBy, StopRun
from gateway.samples import LONG_ANSWER, load_sample
from tests.unit.adapters.client.fake_gateway import serving
from tests.unit.adapters.http.serving_runs import ServedRuns, serving_runs
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN

QUICK = StreamSettings(BackoffSettings(0.01, 0.05), request_seconds=2, give_up_seconds=5, look_seconds=0.02)
SAMPLE = load_sample(LONG_ANSWER)


async def words(count: int, pause: float = 0.005) -> AsyncIterator[str]:
    for number in range(count):
        yield f"wörd {number} "
        await asyncio.sleep(pause)


def said(count: int) -> str:
    return "".join(f"wörd {number} " for number in range(count))


async def publish(gateways: list[ServedRuns], source: AsyncIterator[Any], **more: Any) -> StreamResult:
    return await publish_stream([gateway.url for gateway in gateways], "s", "r7", source, settings=QUICK, **more)


async def until(is_so: Any) -> None:
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.005)


async def test_a_text_is_published_as_it_comes() -> None:
    """Characters may come as text or as bytes."""
    store = FakeRuns()
    async with serving_runs(store) as gateways:
        result = await publish(gateways, words(20), options={"segment": "raw"})

    assert (said(20), "complete", 0) == (store.texts()[0], result.reason, result.attaches)
    assert not result.was_stopped
    assert result.answer["bytes"] == len(said(20).encode())


async def test_the_run_begins_before_its_first_token() -> None:
    """Readers see that the agent is at work."""
    store = FakeRuns()
    first_token = asyncio.Event()

    async def slow() -> AsyncIterator[str]:
        await first_token.wait()
        yield "at last"

    async with serving_runs(store) as gateways:
        publishing = asyncio.ensure_future(publish(gateways, slow()))
        await until(lambda: store.kinds() == ["run_start"])
        first_token.set()
        await publishing

    assert store.texts()[0] == "at last"


async def test_a_gateway_that_goes_away_is_left_for_the_next_one() -> None:
    """At a random moment, in the middle of a provider's stream."""
    for seed in range(4):
        store, rng = FakeRuns(), random.Random(seed)
        async with serving_runs(store, 2) as gateways:

            async def source(rng: random.Random = rng, gateways: list[ServedRuns] = gateways) -> AsyncIterator[bytes]:
                die_at = rng.uniform(0.1, 0.9) * len(SAMPLE.chunks)
                place, is_dead = 0, False
                while place < len(SAMPLE.chunks):
                    size = rng.randint(1, 3_000)
                    yield SAMPLE.chunks[place : place + size]
                    place += size
                    if place > die_at and not is_dead:
                        is_dead = True
                        await gateways[0].close()
                    await asyncio.sleep(0.002)

            result = await publish(gateways, source(), dialect="openai")

        assert SAMPLE.text == store.texts()[0], f"seed {seed}"
        assert result.attaches >= 1
        assert store.kinds().count("run_end") == 1


async def test_a_drain_moves_the_producer() -> None:
    """It is told, attaches at the other gateway and goes on."""
    store = FakeRuns()
    async with serving_runs(store, 2) as gateways:
        publishing = asyncio.ensure_future(publish(gateways, words(60)))
        await until(lambda: gateways[0].runs.open)
        await gateways[0].runs.drain(2, 0)
        result = await publishing

    assert (said(60), 1) == (store.texts()[0], result.attaches)


async def test_lost_writes_are_sent_again() -> None:
    """From the offset that the log has."""
    store = FakeRuns()
    async with serving_runs(store, 2) as gateways:
        publishing = asyncio.ensure_future(publish(gateways, words(60), options={"segment": "raw"}))
        await until(lambda: RUN in store.runs_by_name and len(store.runs_by_name[RUN].texts["text"]) > 50)
        store.lose(RUN)
        result = await publishing

    assert (said(60), 1) == (store.texts()[0], result.lost_writes)


async def test_flushall_begins_the_run_again() -> None:
    """The input is still held from its beginning."""
    store = FakeRuns()
    async with serving_runs(store) as gateways:
        publishing = asyncio.ensure_future(publish(gateways, words(60)))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        store.forget()
        result = await publishing

    assert (said(60), "complete") == (store.texts()[0], result.reason)


async def test_an_interrupt_closes_the_source_and_says_what_was_seen() -> None:
    """The model is not asked for more."""
    store = FakeRuns()
    is_closed = False

    async def endless() -> AsyncIterator[str]:
        nonlocal is_closed
        try:
            while True:
                yield "more "
                await asyncio.sleep(0.005)
        finally:
            is_closed = True

    async with serving_runs(store) as gateways:
        publishing = asyncio.ensure_future(publish(gateways, endless()))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        stopped = store.stop(StopRun(REF, RUN, EndedBy.INTERRUPTED, fields=b',"seen":{"seq":2,"at":5}'))
        gateways[0].runs.on_stopped([bytes(REF.key), RUN.encode(), stopped.end_body])
        result = await publishing

    assert (True, "interrupted", {"seq": 2, "at": 5}) == (result.was_stopped, result.reason, result.seen)
    assert is_closed


async def test_an_answer_that_was_lost_is_no_second_run() -> None:
    """The run had ended by our own run_end: that is success."""
    store = FakeRuns()
    async with serving_runs(store, 2) as gateways:

        async def source() -> AsyncIterator[str]:
            yield "text"
            await until(lambda: RUN in store.runs_by_name and store.texts()[0])
            store.on_append = gateways[0].close_connections

        result = await publish(gateways, source())

    assert ("text", "complete") == (store.texts()[0], result.reason)
    assert store.kinds().count("run_end") == 1


async def test_a_text_that_breaks_off_is_incomplete() -> None:
    """All of it is in the log, and the reason says why."""
    store = FakeRuns()

    async def broken() -> AsyncIterator[bytes]:
        yield b"so f"
        await asyncio.sleep(0.05)
        yield "ar é".encode()[:-1]
        raise ConnectionResetError("the model went away")

    async with serving_runs(store) as gateways:
        result = await publish(gateways, broken())

    assert ("so far ", "incomplete") == (store.texts()[0].rstrip("\ufffd"), result.reason)
    assert "the model went away" in store.payloads[-1]["problem"]


async def test_a_source_that_fails_otherwise_raises_and_leaves_the_run_open() -> None:
    """It is the caller's error; the run is left to its lease."""
    store = FakeRuns()

    async def failing() -> AsyncIterator[bytes]:
        yield b"so far"
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        raise KeyError("a bug")

    async with serving_runs(store) as gateways:
        with pytest.raises(KeyError):
            await publish(gateways, failing())
        await until(lambda: not gateways[0].runs.open)

    assert "run_end" not in store.kinds()


async def test_somebody_elses_run_is_not_taken_over() -> None:
    """Open or ended: PublishError, and nothing is written."""
    store = FakeRuns()
    async with serving_runs(store) as gateways:
        first = asyncio.ensure_future(publish(gateways, words(200)))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        with pytest.raises(PublishError, match="somebody else publishes it"):
            await publish(gateways, words(1))
        store.stop(StopRun(REF, RUN, EndedBy.CANCELLED))
        await first
        kinds = store.kinds()
        with pytest.raises(PublishError, match="has ended before"):
            await publish(gateways, words(1))

    assert kinds == store.kinds()


async def test_nobody_there_is_told_after_a_while() -> None:
    """With the last cause."""
    publisher = StreamPublisher(
        ["http://127.0.0.1:9"], "s", "r7", settings=StreamSettings(BackoffSettings(0.01, 0.02), give_up_seconds=0.3)
    )

    with pytest.raises(PublishError, match=r"no gateway took it for 0\.3 s"):
        await publisher.publish(words(1))


async def test_what_is_in_the_log_is_not_held_for_ever() -> None:
    """Input far above what is held goes through."""
    store = FakeRuns()

    async def large() -> AsyncIterator[bytes]:
        for number in range(100):
            yield json.dumps({"text": f"{number:04}" * 250}).encode() + b"\n"
        yield b'{"event":"end"}\n'

    settings = StreamSettings(BackoffSettings(0.01, 0.05), kept_bytes=20_000, look_seconds=0.01)
    async with serving_runs(store) as gateways:
        publisher = StreamPublisher([gateways[0].url], "s", "r7", dialect="ndjson", settings=settings)
        result = await publisher.publish(large())

    assert ("complete", 100_000) == (result.reason, len(store.texts()[0]))


async def test_a_quota_that_refused_a_run_makes_nobody_elses_ours() -> None:
    """It opened nothing: a run that is found open afterwards has another writer, and is not taken over."""
    answers = [(429, "quota_exceeded", {})] * 3 + [(409, "conflict", {"reason": "run_open"})]
    attached: list[str] = []

    async def stream(request: web.Request) -> web.Response:
        status, code, details = answers.pop(0)
        await request.read()
        return web.json_response({"error": {"code": code, "message": code, "details": details}}, status=status)

    async def attach(request: web.Request) -> web.Response:
        attached.append(request.path)
        return web.json_response({"epoch": 2, "offset": 0})

    run = "/v1/sessions/{session}/runs/{run}"
    async with serving(web.post(run + "/stream", stream), web.post(run + "/attach", attach)) as url:
        with pytest.raises(PublishError, match="somebody else publishes it"):
            await publish_stream([url], "s", "r7", words(3), settings=QUICK)

    assert attached == []
    assert answers == []
