"""The Python reader on real gateways: it says and is answered over reconnects, rebuilds what left the log (A20, G4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest

from gateway.adapters.client.reader import ReaderIdentity, SessionReader, Start
from gateway.adapters.client.settings import BackoffSettings, ReaderSettings
from gateway.adapters.client.texts import Ended, RunTexts
from loadtest.processes import Gateway
from loadtest.publisher import delta
from loadtest.stage import Stage
from tests.integration.test_snapshots import SMALL, Text, write

QUICK = ReaderSettings(backoff=BackoffSettings(base_seconds=0.05, max_seconds=0.3))


class Reading:
    """A reader whose frames are taken in the background."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader = reader
        self.texts = RunTexts()
        self.ends: list[Ended] = []
        self.kinds: list[str] = []
        self.changed = asyncio.Event()

    async def run(self) -> None:
        async with aclosing(self.reader.frames()) as frames:
            async for frame in frames:
                change = self.texts.apply(frame)
                self.kinds.append(frame.kind)
                if isinstance(change, Ended):
                    self.ends.append(change)
                self.changed.set()

    async def until(self, seq: int) -> None:
        async with asyncio.timeout(20):
            while self.reader.cursor is None or self.reader.cursor.seq < seq:
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def reading(gateways: list[Gateway], start: Start, client: str = "me") -> AsyncIterator[Reading]:
    urls = [gateway.url for gateway in gateways]
    made = Reading(SessionReader(urls, "s", ReaderIdentity(client=client), start, QUICK))
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.fault
async def test_input_and_interrupt_outlive_the_gateway_that_heard_them(stage: Stage) -> None:
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways[1:], "s")
    await publisher.publish({"kind": "run_start", "run": "r"})
    async with reading(gateways, Start(from_start=True)) as it, asyncio.timeout(30):
        first = await it.reader.send({"text": "one"})
        await gateways[0].kill()
        second = await it.reader.send({"text": "two"})
        await publisher.publish(*(delta("r", stage.rng) for _ in range(5)))
        await it.until(8)
        seen = len(it.texts.runs["r"].text.value().encode())
        accepted = await it.reader.interrupt("r", seen=(8, seen))
        again = await it.reader.interrupt("r")
        await it.until(accepted["end_seq"])

    assert [first, second] == [1, 2]
    assert again["ended"] is True
    assert [(end.run, end.reason, end.is_equal) for end in it.ends] == [("r", "interrupted", None)]
    assert it.kinds.count("echo") == 2
    assert (it.reader.tally.repeated, it.reader.tally.missing) == (0, 0)


async def test_a_pause_holds_until_resume_and_loses_nothing(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url)
    publisher, text = stage.publisher([gateway], "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    async with reading([gateway], Start(from_start=True)) as it, asyncio.timeout(30):
        await it.until(1)
        await it.reader.pause()
        await write(publisher, text, 60)
        await asyncio.sleep(0.3)  # what came in spite of the pause would be here
        before = it.reader.cursor
        await it.reader.resume()
        await publisher.publish(text.end())
        await it.until(62)

    assert before is not None
    assert before.seq == 1
    assert it.ends == [Ended("r", "complete", True)]


async def test_a_digest_is_equal_after_a_snapshot(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, **SMALL)
    publisher, text = stage.publisher([gateway], "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    await write(publisher, text, 400, 20)
    async with reading([gateway], Start(from_start=True)) as it, asyncio.timeout(30):
        await it.until(401)
        await write(publisher, text, 20)
        await publisher.publish(text.end())
        await it.until(422)

    assert it.ends == [Ended("r", "complete", True)]
    assert it.texts.runs["r"].text.value() == text.text
    assert it.reader.tally.snapshots > 0
    assert not it.reader.tally.gaps
