"""The Python SDK's producer on real gateways that die, freeze and drain: readers see no seam, nobody waits in vain.

The text is judged twice: by the oracle, and by the digest that the run's end carries. FAULT_SEED repeats a test.
"""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from relayrouter import (
    Interrupted,
    ProducerTiming,
    Publisher,
    RunResult,
    RunWriter,
    connect,
    publish_anthropic,
    publish_openai,
)

from gateway.samples import TOOL_ANSWER, load_dialect_samples
from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless

QUICK = ProducerTiming(request_timeout=6.0, backoff_base=0.02, backoff_max=0.2, give_up_after=25.0, watch_every=0.4)
WORDS = [f"wörd {number} 🎉 " for number in range(120)]
LEASE_SECONDS = 4


def publisher_of(gateways: Sequence[Gateway], session: str = "s", timing: ProducerTiming = QUICK) -> Publisher:
    return Publisher([gateway.url for gateway in gateways], session=session, timing=timing)


async def seat(stage: Stage, gateways: Sequence[Gateway], session: str = "s") -> str:
    """The oracle reads this session."""
    name = f"reader of {session}"
    await stage.witness.open({"name": name, "session": session, "urls": [gateway.url for gateway in gateways]})
    await stage.witness.wait(10, [name], welcomes=1)
    return name


async def assert_whole(stage: Stage, name: str, result: RunResult | None, text: str, thinking: str = "") -> None:
    """Nothing lost, repeated or reordered; text and digest are the producer's."""
    assert result is not None
    assert result.reason == "complete"
    assert result.seq is not None
    await stage.witness.wait(15, [name], position=result.seq)
    shown = await stage.witness.ask("texts", name=name)
    assert shown["texts"].get(result.run, "") == text
    assert shown["thinking"].get(result.run, "") == thinking
    assert result.digest == hashlib.sha256(text.encode()).hexdigest()
    assert_flawless(await stage.witness.judge(names=[name]))


async def write_words(run: RunWriter, words: Sequence[str], strike: "asyncio.Event | None" = None) -> None:
    """`strike` is set in the middle."""
    for number, word in enumerate(words):
        await run.write(word)
        await asyncio.sleep(0.005)
        if strike is not None and number == len(words) // 2:
            strike.set()


class Chunk:
    """As the models of providers' clients are: they write themselves."""

    def __init__(self, line: str) -> None:
        self._line = line

    def model_dump_json(self) -> str:
        return self._line


@pytest.mark.fault
async def test_a_gateway_killed_in_the_middle_leaves_no_seam(stage: Stage) -> None:
    """Text, thinking and tool calls alike; the run ends as if nothing had been."""
    gateways = await stage.start_gateways(3, stage.server().url)
    name = await seat(stage, gateways[2:])
    strike = asyncio.Event()

    async def kill() -> None:
        await strike.wait()
        await asyncio.sleep(stage.rng.uniform(0, 0.1))
        await gateways[0].kill()

    killing = asyncio.create_task(kill())
    async with publisher_of(gateways[:2]) as publisher, publisher.run("r") as run:
        await run.thinking("Let me see. ")
        await run.tool({"name": "search", "arguments": "{}"})
        await write_words(run, WORDS, strike)
        await run.thinking("Done.")
    await killing

    await assert_whole(stage, name, run.result, "".join(WORDS), "Let me see. Done.")


@pytest.mark.fault
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_providers_stream_outlives_the_gateway_that_took_it(stage: Stage, provider: str) -> None:
    """The objects of its client go through the gateway's own reading of that provider."""
    gateways = await stage.start_gateways(3, stage.server().url)
    name = await seat(stage, gateways[2:])
    [sample] = [each for each in load_dialect_samples() if each.name == f"{TOOL_ANSWER}.{provider}.sse"]
    lines = re.findall(r"^data: ?({.*})\s*$", sample.chunks.decode(), re.MULTILINE)

    async def stream() -> AsyncIterator[Chunk]:
        for number, line in enumerate(lines):
            yield Chunk(line)
            if number == len(lines) // 2:
                await gateways[0].kill()
            await asyncio.sleep(0.005)

    publish = {"openai": publish_openai, "anthropic": publish_anthropic}[provider]
    async with publisher_of(gateways[:2]) as publisher:
        result = await publish(publisher, stream(), run="r", segment="structure")

    await assert_whole(stage, name, result, sample.text, sample.reasoning)


@pytest.mark.fault
async def test_a_frozen_gateway_is_left_before_the_lease_ends(stage: Stage) -> None:
    """When it goes on it finds itself fenced: not a byte of what it holds comes twice."""
    gateways = await stage.start_gateways(2, stage.server().url, runs__lease_seconds=str(LEASE_SECONDS))
    frozen, other = gateways
    name = await seat(stage, [other])
    async with asyncio.timeout(5 * LEASE_SECONDS), publisher_of(gateways) as publisher, publisher.run("r") as run:
        await write_words(run, WORDS[:60])
        frozen.freeze()
        await write_words(run, WORDS[60:])
    frozen.thaw()
    await asyncio.sleep(1)

    assert run.result is not None
    assert run.result.attaches == 1
    await assert_whole(stage, name, run.result, "".join(WORDS))


@pytest.mark.fault
async def test_a_drain_moves_the_producer(stage: Stage) -> None:
    gateways = await stage.start_gateways(3, stage.server().url)
    name = await seat(stage, gateways[2:])
    async with publisher_of(gateways[:2]) as publisher, publisher.run("r") as run:
        await write_words(run, WORDS[:60])
        gateways[0].terminate()
        await write_words(run, WORDS[60:])

    assert await gateways[0].wait(10) == 0
    await assert_whole(stage, name, run.result, "".join(WORDS))


@pytest.mark.fault
async def test_many_runs_at_two_gateways_outlive_one(stage: Stage) -> None:
    """Half of the producers begin at each; reading sessions see every text as it was written."""
    gateways = await stage.start_gateways(2, stage.server().url)
    strike = asyncio.Event()

    async def one(number: int) -> tuple[str, str]:
        session, order = f"s{number}", gateways if number % 2 else gateways[::-1]
        words = [f"{number}: {word}" for word in WORDS]
        async with publisher_of(order, session) as publisher, publisher.run("r") as run:
            await write_words(run, words, strike)
        assert run.result is not None
        assert run.result.reason == "complete"
        async with connect(gateways[1].url, session=session, client="me", from_="start") as reader:
            async for message in reader:
                if message.kind == "run_end":
                    break
            return reader.text("r"), "".join(words)

    async with asyncio.timeout(50), asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(number)) for number in range(8)]
        await strike.wait()
        await gateways[0].kill()

    for task in tasks:
        shown, written = task.result()
        assert shown == written


async def test_an_interrupt_reaches_a_producer_that_is_silent(stage: Stage) -> None:
    """Within a second, through another gateway, with what the user had seen."""
    gateways = await stage.start_gateways(2, stage.server().url)
    is_waiting = asyncio.Event()

    async def produce() -> None:
        async with publisher_of(gateways[:1]) as publisher, publisher.run("r") as run:
            await run.write("So far, so göod. ")
            is_waiting.set()
            await asyncio.get_running_loop().create_future()

    async with connect(gateways[1].url, session="s", client="me", from_="start") as reader:
        task = asyncio.create_task(produce())
        await is_waiting.wait()
        async with asyncio.timeout(10):
            async for message in reader:
                if message.text:
                    break
        await reader.interrupt("r", (message.seq or 0, 4))
        async with asyncio.timeout(10):  # far below anything that looks now and then; a second on an idle machine
            with pytest.raises(Interrupted) as caught:
                await task

    assert caught.value.seen == {"seq": message.seq, "at": 4}
    assert caught.value.cut("So far, so göod. ") == "So f"


@pytest.mark.fault
async def test_an_interrupt_finds_a_producer_whose_gateway_died(stage: Stage) -> None:
    """It learns of it when it attaches elsewhere."""
    gateways = await stage.start_gateways(2, stage.server().url)
    is_waiting = asyncio.Event()

    async def produce() -> None:
        async with publisher_of(gateways) as publisher, publisher.run("r") as run:
            await run.write("So far.")
            is_waiting.set()
            await asyncio.get_running_loop().create_future()

    async with connect(gateways[1].url, session="s", client="me", from_="start") as reader:
        task = asyncio.create_task(produce())
        await is_waiting.wait()
        async with asyncio.timeout(10):
            async for message in reader:
                if message.text:
                    break
        await gateways[0].kill()
        await reader.interrupt("r")
        async with asyncio.timeout(20):
            with pytest.raises(Interrupted):
                await task


async def test_an_exception_and_a_cancellation_are_told_to_readers(stage: Stage) -> None:
    """With all that was written before; never as complete."""
    gateway = await stage.gateway(stage.server().url)
    is_waiting = asyncio.Event()

    async def fail() -> None:
        async with publisher_of([gateway]) as publisher, publisher.run("failing") as run:
            await run.write("So far.")
            raise KeyError("secret")

    async def wait() -> None:
        async with publisher_of([gateway]) as publisher, publisher.run("cancelled") as run:
            await run.write("So far.")
            is_waiting.set()
            await asyncio.get_running_loop().create_future()

    with pytest.raises(KeyError):
        await fail()
    waiting = asyncio.create_task(wait())
    await is_waiting.wait()
    waiting.cancel()
    await asyncio.wait([waiting])
    ends: dict[str, dict[str, Any]] = {}
    async with connect(gateway.url, session="s", client="me", from_="start") as reader, asyncio.timeout(10):
        async for message in reader:
            if message.kind == "run_end" and message.run is not None:
                ends[message.run] = message.payload
            if len(ends) == 2:
                break
        texts = {run: reader.text(run) for run in ends}

    assert {run: end["reason"] for run, end in ends.items()} == {"failing": "failed", "cancelled": "cancelled"}
    assert ends["failing"]["problem"] == "the agent failed: KeyError"
    assert texts == {"failing": "So far.", "cancelled": "So far."}


@pytest.mark.fault
async def test_memory_is_bounded_while_nothing_gets_into_the_log(stage: Stage) -> None:
    """Redis stands still: writes wait, and all of it arrives afterwards."""
    server = stage.server()
    gateways = await stage.start_gateways(2, server.url)
    bound, chunk, count = 128 * 1024, "x" * 4_096, 400
    timing = ProducerTiming(backoff_base=0.02, backoff_max=0.2, request_timeout=2.0, input_bytes=bound)
    written = 0

    async def produce(run: RunWriter) -> None:
        nonlocal written
        async with run:
            await run.write("begin ")
            while run._stream._attaches == 0 and await run._stream.offset_in_log() != len('{"text":"begin "}\n'):
                await asyncio.sleep(0.02)
            server.freeze()
            for _ in range(count):
                await run.write(chunk)
                written += len(chunk)

    async with publisher_of(gateways, timing=timing) as publisher:
        run = publisher.run("r")
        task = asyncio.create_task(produce(run))
        async with asyncio.timeout(20):
            while written < bound - 2 * len(chunk):
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)  # what goes beyond the bound would have been written by now
        before, held = written, run._input.end - run._input.first
        server.thaw()
        async with asyncio.timeout(30):
            await task

    assert before <= bound
    assert held <= bound + 2 * len(chunk)
    assert run.result is not None
    assert (run.result.reason, run.result.bytes) == ("complete", 6 + count * len(chunk))


@pytest.mark.fault
async def test_pushes_are_once_and_in_order_whatever_dies(stage: Stage) -> None:
    gateways = await stage.start_gateways(2, stage.server().url)
    strike = asyncio.Event()

    async def kill() -> None:
        await strike.wait()
        await gateways[0].kill()

    killing = asyncio.create_task(kill())
    seqs: list[int] = []
    async with publisher_of(gateways) as publisher:
        for number in range(0, 120, 4):
            pushes = [publisher.push({"kind": "note", "n": number + each}) for each in range(4)]
            seqs += [result.seq for result in await asyncio.gather(*pushes)]
            if number == 40:
                strike.set()
    await killing
    found: list[int] = []
    async with connect(gateways[1].url, session="s", client="me", from_="start") as reader, asyncio.timeout(10):
        async for message in reader:
            found += [message.payload["n"]] if message.kind == "note" else []
            if len(found) == 120:
                break

    assert found == list(range(120))
    assert seqs == list(range(1, 121))


async def test_a_message_to_a_user_reaches_each_session_and_one_that_is_kept_waits(stage: Stage) -> None:
    """Once in each; nobody is no error."""
    gateway = await stage.gateway(stage.server().url)
    async with publisher_of([gateway], "s1") as publisher:
        kept = await publisher.push({"kind": "note", "n": 1}, {"kind": "note", "n": 2}, expires_in=600)
        for session in ("s1", "s2"):
            async with connect(gateway.url, session=session, client="me", from_="start") as reader:
                sending = asyncio.create_task(reader.send({"text": "hello"}))
                async with asyncio.timeout(10):
                    await sending  # it was connected: the gateways know where the user is
        reached = await publisher.push_to_user("anonymous", {"kind": "alert"})
        nobody = await publisher.push_to_user("somebody else", {"kind": "alert"})

    assert sorted((each.session, each.status) for each in reached) == [("s1", "ok"), ("s2", "ok")]
    assert nobody == []
    assert (kept.seqs, kept.is_live) == ((1, 2), False)
    assert kept.kept_until is not None


@pytest.mark.fault
async def test_the_answer_comes_although_the_gateway_that_asked_died(stage: Stage) -> None:
    gateways = await stage.start_gateways(2, stage.server().url)
    async with publisher_of(gateways) as publisher, connect(gateways[1].url, session="s", client="me") as reader:
        # A message when the reader was there first, and of the welcome when the ask was: the event comes either way.
        was_asked = asyncio.Event()
        reader.on("ask", lambda event: was_asked.set())
        asking = asyncio.create_task(publisher.ask("Delete 3 files?", options=["yes", "no"], ask="a1"))
        async with asyncio.timeout(20):
            await was_asked.wait()
            await gateways[0].kill()
            await reader.answer("a1", "yes")
            answer = await asking

    assert (answer.status, answer.value, answer.client) == ("answered", "yes", "me")
