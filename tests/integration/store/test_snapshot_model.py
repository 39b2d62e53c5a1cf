"""Snapshots at random moments of a busy session equal the text, also across a fork that lost writes (G4, G10)."""

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gateway.domain.wire.entry import Item
from gateway.ports import StoreUnavailable
from gateway.settings import RetentionSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.run_stage import RunStage, code, running
from tests.integration.store.stage import OWN, data, delta, run_end, thinking

SETTINGS = Settings(retention=RetentionSettings(max_messages=300))
RUNS = ("a", "b", "c/1")
ALPHABET = 'ab \n"\\\x01é漢😀'
SECONDS_OF_APPENDS = 1.0


@dataclass
class Oracle:
    """What was appended: run and text of each seq."""

    messages: list[tuple[str, str]] = field(default_factory=list)

    def texts(self, upto: int) -> dict[str, str]:
        texts: dict[str, str] = {}
        for run, text in self.messages[:upto]:
            if run:
                texts[run] = texts.get(run, "") + text
        return texts

    async def reaches(self, seq: int) -> None:
        async with asyncio.timeout(10):
            while len(self.messages) < seq:
                await asyncio.sleep(0)


class Publisher:
    """One producer that appends some 800 messages a second, as long as it is answered so soon."""

    def __init__(self, runs: RunStage, oracle: Oracle, rng: random.Random) -> None:
        self._runs = runs
        self._oracle = oracle
        self._rng = rng
        self._producer = OWN
        self.appended = 0

    def lose_numbers(self) -> None:
        self._producer = self._producer._replace(epoch=self._producer.epoch + 1)

    def _item(self) -> tuple[Item, tuple[str, str]]:
        run, text = self._rng.choice(RUNS), "".join(self._rng.choices(ALPHABET, k=self._rng.randint(0, 60)))
        match self._rng.randint(0, 9):
            case 0:
                return data(text), ("", "")
            case 1:
                return thinking(run, text), ("", "")
            case 2:
                return code(run, text), (run, text)
            case _:
                return delta(run, text), (run, text)

    async def append(self, count: int) -> None:
        items = [self._item() for _ in range(count)]
        appended = await self._runs.put(*[item for item, _ in items], producer=self._producer)
        assert appended.results[0].seq == len(self._oracle.messages) + 1
        self._oracle.messages += [message for _, message in items]
        self.appended += len(items)

    async def publish(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            count = self._rng.randint(1, 4)
            await self.append(count)
            await asyncio.sleep(count / 800)  # pace


async def answering(runs: RunStage) -> None:
    """Until the store's connection is there again."""
    async with asyncio.timeout(10):
        while True:
            try:
                await runs.stage.client.call("PING")
                return
            except StoreUnavailable:
                await asyncio.sleep(0.01)


async def busy(runs: RunStage, publisher: Publisher, oracle: Oracle, rng: random.Random, seconds: float) -> int:
    """Readers come at random moments while messages are appended. Returns how many came."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    came = 0
    while len(oracle.messages) < 400:  # the log is full, its beginning must be rebuilt
        await publisher.append(20)
    publishing, deadline = asyncio.ensure_future(publisher.publish(stop)), loop.time() + seconds
    try:
        while loop.time() < deadline and not publishing.done():
            await asyncio.sleep(rng.random() * 0.02)  # random moments are what is tested
            texts, position = await runs.rebuilt()
            await oracle.reaches(position)
            assert texts == oracle.texts(position)
            came += 1
    finally:
        stop.set()
        await publishing
    return came


@pytest.mark.parametrize("seed", [1, 2])
async def test_snapshots_equal_the_text(shared_server: Server, seed: int) -> None:
    rng, oracle = random.Random(seed), Oracle()
    async with running(shared_server.address, shared_server.admin, SETTINGS) as runs:
        publisher = Publisher(runs, oracle, rng)

        came = await busy(runs, publisher, oracle, rng, SECONDS_OF_APPENDS)
        await runs.put(run_end("a"), producer=OWN)
        oracle.messages.append(("", ""))

        assert came >= 5
        assert publisher.appended > 200, "busy, also on a busy machine"
        assert await runs.rebuilt() == (oracle.texts(1 << 60), len(oracle.messages))


@pytest.mark.parametrize("seed", [3, 4])
async def test_snapshots_equal_the_text_after_lost_writes(tmp_path: Path, seed: int) -> None:
    """The server is killed and comes back as it was at a random moment. A reader that was there cuts its texts to the
    fork's base and goes on from there; a new one is rebuilt; both have the text."""
    rng, oracle = random.Random(seed), Oracle()
    server = Server(tmp_path, "--appendonly", "no")
    server.start()
    try:
        async with running(server.address, server.admin, SETTINGS) as runs:
            publisher = Publisher(runs, oracle, rng)
            await busy(runs, publisher, oracle, rng, rng.random() * SECONDS_OF_APPENDS)
            server.admin.save()
            saved = len(oracle.messages)
            await busy(runs, publisher, oracle, rng, rng.random() * 0.3)
            known, _ = await runs.rebuilt()

            server.restart()
            await answering(runs)
            log = (await runs.plan()).log
            del oracle.messages[saved:]
            publisher.lose_numbers()
            came = await busy(runs, publisher, oracle, rng, SECONDS_OF_APPENDS / 5)

            assert (log.head, log.forks[-1].base) == (saved, saved)
            lengths = {run: len(text.encode()) for run, text in oracle.texts(saved).items()}
            assert {run: lengths.get(run, 0) for run in log.forks[-1].runs} == log.forks[-1].runs
            texts = {run: text.encode()[: log.forks[-1].runs[run]] for run, text in known.items()}
            position = await runs.replayed(texts, saved, len(oracle.messages))
            if position is not None:  # otherwise the log went on so far that the reader is rebuilt like a new one
                assert {run: text.decode() for run, text in texts.items()} == oracle.texts(position)
            assert came >= 1
            assert await runs.rebuilt() == (oracle.texts(1 << 60), len(oracle.messages))
    finally:
        server.end()
