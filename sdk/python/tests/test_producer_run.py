"""A run as it is written: what arrives, how it ends, and who is told when somebody else ends it."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from relayrouter import (
    AuthError,
    Cancelled,
    ClosedError,
    ConflictError,
    ForbiddenError,
    Interrupted,
    Publisher,
    RelayError,
    RunWriter,
    Stopped,
    TooLargeError,
    connect,
)
from relayrouter.producer_input import BLOCK_BYTES

from sdk.python.tests.run_server import QUICK, answering, error, passing, publisher_of, run_server

WORDS = [f"wörd {number} " for number in range(200)]


async def write_all(run: RunWriter, words: list[str] = WORDS) -> None:
    async with run:
        for word in words:
            await run.write(word)


async def write_and_raise(run: RunWriter, chunk: str | bytes, exc: Exception) -> None:
    async with run:
        await run.write(chunk)
        raise exc


async def never() -> None:
    await asyncio.get_running_loop().create_future()


class Writing:
    """A run in a task of its own, which waits for its model after `words`."""

    def __init__(self, run: RunWriter, *words: str) -> None:
        self.run = run
        self.words = words
        self.waits = asyncio.Event()
        self.task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        async with self.run:
            for word in self.words:
                await self.run.write(word)
            self.waits.set()
            await never()


# ---- what arrives ------------------------------------------------------------------------------------------------


async def test_what_is_written_arrives_and_the_run_is_complete() -> None:
    """The result says where its end is."""
    async with run_server() as server:
        run = publisher_of(server).run("r", segment="sentence", max_delay=0.5, first=False)
        await write_all(run)

    assert server.text == "".join(WORDS)
    assert run.result is not None
    assert (run.result.reason, run.result.seq, run.result.cursor, run.result.digest) == ("complete", 9, "e.f.9", "d1")
    assert {"dialect": "ndjson", "segment": "sentence", "max_delay_ms": "500", "first": "0"} == server.queries[0]


async def test_text_thinking_tools_and_data_keep_their_order() -> None:
    """They travel as lines of one stream."""
    async with run_server() as server, publisher_of(server).run() as run:
        await run.thinking("hm")
        await run.write("a")
        await run.tool({"name": "search"})
        await run.write("b")
        await run.data({"mood": "good"})
        run.finish(finish_reason="stop", usage={"output_tokens": 2})

    assert [
        {"thinking": "hm"},
        {"text": "a"},
        {"tool": {"name": "search"}},
        {"text": "b"},
        {"data": {"mood": "good"}},
    ] == (server.lines)
    assert b'{"event":"end","finish_reason":"stop","usage":{"output_tokens":2}}\n' in server.raw


async def test_a_character_may_come_in_parts() -> None:
    """Bytes cut anywhere, and halves of a surrogate pair."""
    async with run_server() as server, publisher_of(server).run() as run:
        for byte in "né 🎉".encode():
            await run.write(bytes([byte]))
        await run.write("\ud83c")
        await run.write("\udf89")
        await run.write("é".encode()[:1])

    assert server.text == "né 🎉" + "\ud83c\udf89" + "\ufffd"


async def test_a_providers_input_is_handed_through_as_it_is() -> None:
    """No line of ours is added, and what has its own place there is refused."""
    async with run_server() as server, publisher_of(server).run(dialect="openai") as run:
        await run.write('{"a":')
        await run.write(b"1}\n")
        with pytest.raises(TypeError, match="own place"):
            await run.thinking("hm")

    assert bytes(server.raw) == b'{"a":1}\n'


async def test_a_tool_call_above_the_limit_is_refused_at_once() -> None:
    """Nothing of it is sent; one below is."""
    async with run_server() as server, publisher_of(server).run() as run:
        with pytest.raises(TooLargeError):
            await run.data({"x": "y" * 48 * 1024})
        await run.data({"x": "y" * 47 * 1024})

    assert len(server.lines) == 1


async def test_a_long_text_is_cut_into_lines_that_the_gateway_takes() -> None:
    text = "\x01é🎉" * 200_000
    async with run_server() as server, publisher_of(server).run() as run:
        await run.write(text)

    assert server.text == text
    assert max(len(line) for line in bytes(server.raw).splitlines()) < 1024 * 1024


async def test_a_reading_session_writes_runs_with_its_own_token() -> None:
    async with run_server() as server:
        session = connect(server.urls, session="s", token="t1")
        await write_all(session.run("r"))

    assert server.text == "".join(WORDS)
    assert set(server.tokens) == {"Bearer t1"}


# ---- faults of gateways ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("break_at", [0, 1, 700, 2000])
async def test_a_broken_stream_goes_on_at_the_next_gateway_from_the_byte_in_the_log(break_at: int) -> None:
    async with run_server(2, break_at=break_at) as server:
        run = publisher_of(server).run()
        await write_all(run)

    assert server.text == "".join(WORDS)
    assert run.result is not None
    assert (run.result.reason, run.result.attaches) == ("complete", 1)
    assert [query["offset"] for query in server.queries if "offset" in query] == [str(break_at)]


async def test_a_portals_page_is_no_answer() -> None:
    """A page with status 200 that is no JSON."""
    async with run_server(faults=[answering(lambda: web.Response(text="<html>"))]) as server:
        await write_all(publisher_of(server).run())

    assert server.text == "".join(WORDS)


async def test_a_dead_gateway_is_passed_over() -> None:
    async with run_server() as server:
        publisher = Publisher(["http://127.0.0.1:9", *server.urls], session="s", timing=QUICK)
        await write_all(publisher.run())

    assert server.text == "".join(WORDS)


@pytest.mark.parametrize("text", ["<html>", '{"message":"no route"}'])
@pytest.mark.parametrize("status", [404, 403, 502, 302])
async def test_a_proxys_page_is_trouble_that_passes(status: int, text: str) -> None:
    """Whatever its status: only a gateway's own word is final."""
    page = answering(lambda: web.Response(status=status, text=text, headers={"Location": "/login"}))
    async with run_server(faults=[page]) as server:
        run = publisher_of(server).run()
        await write_all(run)

    assert server.text == "".join(WORDS)


async def test_an_expired_token_is_fetched_again() -> None:
    """Only a callback can give another one."""
    given = iter(["old", "new", "new", "new"])
    async with run_server(faults=[answering(lambda: error(401, "unauthenticated"))]) as server:
        await write_all(publisher_of(server, token=lambda: next(given)).run())

    assert server.tokens[:2] == ["Bearer old", "Bearer new"]
    assert server.text == "".join(WORDS)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda: error(401, "unauthenticated"), AuthError),
        (lambda: error(403, "forbidden"), ForbiddenError),
        (lambda: error(409, "conflict", reason="run_open"), ConflictError),
        (lambda: error(409, "fenced", reason="run_ended", end={"reason": "complete"}), ConflictError),
        (lambda: error(409, "fenced", reason="epoch"), ConflictError),
    ],
)
async def test_a_refusal_is_raised_where_the_block_waits(answer: Any, kind: type[RelayError]) -> None:
    """Also when nothing is written any more."""
    async with run_server(faults=[answering(answer)]) as server:
        with pytest.raises(kind):
            async with asyncio.timeout(10), publisher_of(server, token="t").run():
                await never()


async def test_a_body_that_a_proxy_finds_too_long_is_final() -> None:
    """It would find it so again."""
    page = answering(lambda: web.Response(status=413, text="<html>"))
    async with run_server(faults=[page]) as server:
        with pytest.raises(TooLargeError):
            await write_all(publisher_of(server).run())


async def test_an_own_attach_that_takes_effect_late_is_no_stranger() -> None:
    """Its answer was lost, and it fences the epoch that we got meanwhile; once, for the next one is somebody else's."""

    async def lost(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def late(_request: web.Request) -> None:
        server.epoch = (server.epoch or 0) + 1

    async with run_server(break_at=100) as server:
        server.faults = [passing, lost, passing, late]
        run = publisher_of(server).run()
        await write_all(run)
        text = server.text
        server.faults, server.break_at, server.epoch, server.end = (
            [passing, lost, passing, late, passing, late],
            10,
            None,
            None,
        )
        server.raw.clear()
        with pytest.raises(ConflictError, match="another producer"):
            await write_all(publisher_of(server).run())

    assert text == "".join(WORDS)
    assert run.result is not None
    assert run.result.attaches == 2


async def test_it_gives_up_when_no_gateway_takes_it_for_long() -> None:
    timing = replace(QUICK, give_up_after=0.05)
    publisher = Publisher("http://127.0.0.1:9", session="s", timing=timing)
    with pytest.raises(RelayError, match=r"no gateway took it for 0\.05 s") as caught:
        async with publisher.run():
            await never()

    assert (caught.value.code, caught.value.retryable) == ("unavailable", True)


async def test_a_run_that_the_gateways_forgot_begins_again() -> None:
    """Its input is still held from the beginning."""

    async def forget(_request: web.Request) -> web.StreamResponse:
        server.epoch = None
        server.raw.clear()
        return error(409, "producer_unknown")

    async with run_server(break_at=100) as server:
        server.faults = [passing, forget]
        await write_all(publisher_of(server).run())

    assert server.text == "".join(WORDS)


# ---- how it ends -------------------------------------------------------------------------------------------------


async def test_an_exception_ends_it_as_failed_after_all_that_was_written() -> None:
    """Readers are told its kind, not its words: those may be secret."""
    async with run_server() as server:
        run = publisher_of(server).run()
        with pytest.raises(KeyError):
            await write_and_raise(run, "so far", KeyError("sk-secret"))

    assert server.text == "so far"
    assert server.bodies[-1] == {"reason": "failed", "message": "the agent failed: KeyError"}
    assert run.result is not None
    assert run.result.reason == "failed"


@pytest.mark.parametrize("dialect", ["text", "openai"])
async def test_a_providers_input_that_breaks_off_is_never_complete(dialect: Any) -> None:
    """Not even a line or a character that was begun keeps it from its end."""
    async with run_server() as server:
        with pytest.raises(OSError, match="gone"):
            await write_and_raise(publisher_of(server).run(dialect=dialect), b'{"x":1}\nhalf a \xc3', OSError("gone"))

    assert (server.end or {})["reason"] == "failed"


async def test_a_failure_may_be_told_in_words_and_without_an_exception() -> None:
    async with run_server() as server, publisher_of(server).run() as run:
        await run.write("so far")
        run.fail("The search index is away.")

    assert server.bodies[-1] == {"reason": "failed", "message": "The search index is away."}


async def test_a_cancelled_task_cancels_the_run() -> None:
    async with run_server() as server:
        writing = Writing(publisher_of(server).run(), "so far")
        await writing.waits.wait()
        writing.task.cancel()
        await asyncio.wait([writing.task])

    assert writing.task.cancelled()
    assert (server.text, server.end) == ("so far", {"reason": "cancelled"})
    assert writing.run.result is not None
    assert writing.run.result.reason == "cancelled"


async def test_an_impatient_second_cancellation_leaves_nothing_behind() -> None:
    """No task and no connection."""

    async def hang(_request: web.Request) -> web.StreamResponse:
        await never()
        raise AssertionError

    async with run_server() as server:
        before = asyncio.all_tasks()
        writing = Writing(publisher_of(server).run(), "so far")
        await server.until(lambda: server.text == "so far")
        server.faults = [hang]
        asked = len(server.asked)
        writing.task.cancel()
        await server.until(lambda: len(server.asked) > asked)
        writing.task.cancel()
        await asyncio.wait([writing.task])
        left = {task.get_name() for task in asyncio.all_tasks() - before if task.get_name().startswith("relayrouter")}

    assert writing.task.cancelled()
    assert left == set()
    assert writing.run._gateways._client is None


async def test_leaving_is_bounded_when_no_gateway_answers() -> None:
    """The run is left to its lease; the application's own exception comes through."""
    publisher = Publisher("http://127.0.0.1:9", session="s", timing=replace(QUICK, leave_timeout=0.05))
    async with asyncio.timeout(10):
        with pytest.raises(KeyError):
            async with publisher.run():
                raise KeyError("x")


async def test_it_is_written_in_its_block_only() -> None:
    async with run_server() as server:
        run = publisher_of(server).run()
        with pytest.raises(ClosedError):
            await run.write("before")
        await write_all(run, ["in"])
        with pytest.raises(ClosedError):
            await run.write("after")
        with pytest.raises(ClosedError):
            await write_all(run)

    assert server.text == "in"


# ---- stopped by somebody else ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "kind"), [("interrupted", Interrupted), ("cancelled", Cancelled), ("abandoned", Stopped)]
)
async def test_a_stop_is_raised_while_the_model_is_silent(reason: str, kind: type[Stopped]) -> None:
    """With what the user had seen; the task goes on as if it had never been cancelled."""
    async with run_server() as server:
        writing = Writing(publisher_of(server).run("r"), "Hello, wörld.")
        await server.until(lambda: "wörld" in server.text)
        server.stop(reason, seen={"seq": 3, "at": 10})
        async with asyncio.timeout(10):
            with pytest.raises(kind) as caught:
                await writing.task

    assert type(caught.value) is kind
    assert (caught.value.run, caught.value.reason, caught.value.seen) == ("r", reason, {"seq": 3, "at": 10})
    assert caught.value.cut("Hello, wörld.") == "Hello, wö"
    assert writing.run.result is not None
    assert writing.run.result.was_stopped
    assert writing.task.cancelling() == 0


async def test_a_stop_is_raised_from_a_write_that_waits_for_room() -> None:
    """It comes from `write` itself: nothing is cancelled."""
    caught: list[Interrupted] = []

    async def flood(run: RunWriter) -> None:
        async with run:
            try:
                while True:
                    await run.write("x" * 1000)
            except Interrupted as exc:
                caught.append(exc)

    async with run_server(may_log=asyncio.Event()) as server:
        task = asyncio.ensure_future(flood(publisher_of(server, timing=replace(QUICK, input_bytes=50_000)).run()))
        await server.until(lambda: server.asked.count("GET") > 3)
        server.stop("interrupted")
        server.may_log.set()
        async with asyncio.timeout(10):
            await task

    assert len(caught) == 1
    assert task.cancelling() == 0


async def test_a_stop_at_the_very_end_is_raised_when_the_block_is_left() -> None:
    """The answer was whole here, but not in the log."""
    async with run_server(may_log=asyncio.Event()) as server:
        task = asyncio.ensure_future(write_all(publisher_of(server).run(), ["all"]))
        await server.until(lambda: server.epoch == 1)
        server.stop("interrupted")
        server.may_log.set()
        async with asyncio.timeout(10):
            with pytest.raises(Interrupted):
                await task


async def test_a_cancellation_by_the_application_is_not_turned_into_a_stop() -> None:
    """Both at once: the task was to end, and it does."""
    async with run_server() as server:
        writing = Writing(publisher_of(server).run(), "so far")
        await server.until(lambda: server.text == "so far")
        await writing.waits.wait()
        server.stop("interrupted")
        await writing.run._over.wait()
        writing.task.cancel()
        await asyncio.wait([writing.task])

    assert writing.task.cancelled()


async def test_a_stop_that_a_library_swallows_is_raised_all_the_same() -> None:
    async with run_server() as server:
        run = publisher_of(server).run()

        async def write() -> None:
            async with run:
                await run.write("so far")
                with suppress(asyncio.CancelledError):
                    await never()

        task = asyncio.ensure_future(write())
        await server.until(lambda: server.text == "so far")
        server.stop("interrupted")
        async with asyncio.timeout(10):
            with pytest.raises(Interrupted):
                await task

    assert task.cancelling() == 0


# ---- bounds ------------------------------------------------------------------------------------------------------


async def test_a_write_waits_while_too_much_is_not_in_the_log() -> None:
    """What is held stays near the bound, and everything arrives when the log goes on."""
    bound, chunk = 4 * BLOCK_BYTES, "x" * 10_000
    written = 0
    most = 0

    async def flood(run: RunWriter) -> None:
        nonlocal written, most
        async with run:
            for _ in range(100):
                await run.write(chunk)
                written += 1
                most = max(most, run._input.end - run._input.first)

    async with run_server(may_log=asyncio.Event()) as server:
        task = asyncio.ensure_future(flood(publisher_of(server, timing=replace(QUICK, input_bytes=bound)).run()))
        await server.until(lambda: server.asked.count("GET") > 3)
        before = written
        server.may_log.set()
        async with asyncio.timeout(20):
            await task

    assert bound // 10_020 - 1 <= before <= bound // 10_000 + 1
    assert most <= bound + BLOCK_BYTES + len(chunk)
    assert len(server.text) == 100 * len(chunk)


async def test_a_frozen_gateway_is_left_because_nobody_renews_the_lease() -> None:
    """It takes bytes and does nothing with them."""

    async def freeze(request: web.Request) -> web.StreamResponse:
        server.epoch, server.lease_ms = 1, 29_000
        async for _ in request.content.iter_any():
            server.lease_ms -= 5_000
            await asyncio.sleep(0)
        await never()
        raise AssertionError

    async with run_server(2) as server:
        server.faults = [freeze]
        timing = replace(QUICK, watch_every=0.02)
        async with asyncio.timeout(20), publisher_of(server, timing=timing).run() as run:
            while not run._stream._attaches:
                await run.write("w ")
                server.lease_ms -= 1_000
                await asyncio.sleep(0.02)

    assert set(server.text) == {"w", " "}
    assert run.result is not None
    assert (run.result.reason, run.result.attaches) == ("complete", 1)
