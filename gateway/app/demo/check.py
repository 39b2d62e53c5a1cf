"""`relayrouter demo --check`: the demo without a person. Faults in mid-stream, then every text against its source."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from gateway.app.demo.agent import OPTIONS
from gateway.app.demo.stage import Stage
from gateway.app.demo.streams import RecordedStream
from gateway.app.demo.until import until
from gateway.core.tasks import TaskOwner

_FIRST_FAULT_SECONDS = 1.0
_BETWEEN_FAULTS_SECONDS = (1.8, 3.2)
_FREEZE_SECONDS = 4.0
_CUT_SECONDS = 1.5
FAULTS_NEEDED = 2
_SHOWN_BYTES = 100
"""What a reader has of a run when it interrupts it."""
_MORE_SECONDS = 15.0
"""So much longer the stream goes on while fewer faults than needed have hit it."""
_SETTLE_SECONDS = 20.0
"""How long publisher and readers may take to have everything once the faults are over."""
_RETURN_SECONDS = 2.0
_STORM_CLIENTS = 60
_OPERATION_SECONDS = 12.0
"""About as long an operation takes: none is begun with less time left."""
_OPERATION_ENDS_SECONDS = 60.0
"""Whatever it does; each of its own waits is shorter."""


class Saboteur:
    """Breaks something every few seconds while a run is open: a kill first, then each kind once a round.

    When all was broken once, it rolls and resizes the cluster and lets a storm come, as long as there is time.
    """

    def __init__(self, stage: Stage, seconds: float, rng: random.Random) -> None:
        self._stage = stage
        self._rng = rng
        self._ends_at = time.monotonic() + seconds
        self.is_operating = False

    async def run(self) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [self._drain, self._freeze, self._cut]
        operations = [self._roll, self._resize, self._storm]
        self._rng.shuffle(operations)
        await asyncio.sleep(_FIRST_FAULT_SECONDS)
        while True:
            for kind in (self._kill, *self._rng.sample(kinds, len(kinds))):
                await until(self._is_worth_it)
                await kind()
                await asyncio.sleep(self._rng.uniform(*_BETWEEN_FAULTS_SECONDS))
            while operations and time.monotonic() + _OPERATION_SECONDS < self._ends_at:
                self.is_operating = True
                await operations.pop()()
                self.is_operating = False

    def _is_worth_it(self) -> bool:
        """A fault between two runs, or one that nobody sees, proves nothing."""
        return self._stage.open_run is not None and self._stage.readers_at(self._stage.busiest()) > 0

    async def _kill(self) -> None:
        self._stage.kill(self._stage.busiest())

    async def _drain(self) -> None:
        self._stage.terminate(self._stage.busiest())

    async def _freeze(self) -> None:
        await self._stage.freeze(self._stage.busiest(), _FREEZE_SECONDS)

    async def _cut(self) -> None:
        await self._stage.cut_redis(_CUT_SECONDS)

    async def _roll(self) -> None:
        await self._stage.cluster.operations.roll()

    async def _resize(self) -> None:
        await self._stage.cluster.operations.scale_out()
        await self._kill()  # so that the new one gets some of its readers
        await asyncio.sleep(_RETURN_SECONDS)
        await self._stage.cluster.operations.scale_in()

    async def _storm(self) -> None:
        await self._stage.cluster.storms.run(_STORM_CLIENTS)
        await self._stage.cluster.storms.send_home()


class Visitors:
    """Readers who talk back while things break: one writes to the agent, all answer what it asks."""

    def __init__(self, stage: Stage, owner: TaskOwner, rng: random.Random) -> None:
        self._stage = stage
        self._owner = owner
        self._rng = rng

    async def run(self) -> None:
        stage, answered = self._stage, set[str]()
        await until(lambda: stage.open_run is not None)
        await self._rng.choice(stage.readers).say("Hello, agent.")
        two = self._rng.sample(stage.readers, 2)
        while True:
            await until(lambda: bool(two[0].asked - answered))
            for ask in two[0].asked - answered:
                answered.add(ask)
                await asyncio.gather(*(reader.answer(ask, OPTIONS[0]) for reader in two))

    async def interrupt(self, stream: RecordedStream) -> bool:
        """One more run, which a reader ends. Whether no text of it came to that reader afterwards."""
        stage, run, reader = self._stage, "interrupted", self._rng.choice(self._stage.readers)
        publishing = self._owner.start("interrupted", stage.agent.publish(stream, run, lambda: False))
        enough = min(_SHOWN_BYTES, len(stream.text) // 3)
        await until(lambda: reader.length(run) >= enough, _SETTLE_SECONDS)
        await reader.interrupt()
        shown = reader.length(run)
        await publishing
        await until(stage.is_complete, _SETTLE_SECONDS)
        return reader.length(run) == shown


async def sabotage(stage: Stage, owner: TaskOwner, seconds: float, rng: random.Random) -> dict[str, Any]:
    """Stream, talk and break for `seconds`, a little longer if need be; the tally when all is over."""
    playing = owner.start("play", stage.agent.play())
    stage.media.switch(is_on=True)
    saboteur = Saboteur(stage, seconds, rng)
    breaking = owner.start("saboteur", saboteur.run())
    visitors = Visitors(stage, owner, rng)
    talking = owner.start("visitors", visitors.run())
    await asyncio.wait([playing], timeout=seconds)
    await until(lambda: len(stage.faults) >= FAULTS_NEEDED or playing.done(), _MORE_SECONDS)
    await until(lambda: not saboteur.is_operating, _OPERATION_ENDS_SECONDS)
    breaking.cancel()
    stage.finish()
    await until(playing.done, _SETTLE_SECONDS)
    is_silent, agent = False, stage.agent
    with suppress(TimeoutError):
        async with asyncio.timeout(2 * _SETTLE_SECONDS):
            is_silent = await visitors.interrupt(stage.shortest)
    await until(lambda: agent.said.inputs > 0 and agent.answered >= agent.asks, _SETTLE_SECONDS)
    talking.cancel()
    await until(stage.is_complete, _SETTLE_SECONDS)
    if not is_silent:
        stage.note("the interrupt did not work, or text came after its acknowledgement")
        agent.said.interrupts = 0
    return stage.tally(is_over=True) | operations_of(stage)


def operations_of(stage: Stage) -> dict[str, Any]:
    """What else was done while the texts were read."""
    operations, storm = stage.cluster.operations, stage.cluster.storms.report
    return {
        "operations": [*operations.done, *([] if storm is None else [storm.words])],
        "storms_lost": 0 if storm is None or storm.passed else 1 if storm.lost is None else storm.lost,
        "media": min(reader.media.audio + reader.media.video for reader in stage.readers),
    }


def passes(result: dict[str, Any]) -> bool:
    """The rule for exit code 0."""
    is_clean = result["lost"] == result["repeated"] == result["reordered"] == 0
    is_all_there = result["received"] == result["published"] > 0
    is_heard = min(result["inputs"], result["answers"], result["interrupts"]) > 0
    has_faults = len(result["faults"]) >= FAULTS_NEEDED
    has_more = result["storms_lost"] == 0 and result["media"] > 0
    return is_clean and is_all_there and is_heard and has_faults and has_more and result["digests_equal"] is True


__all__ = ["FAULTS_NEEDED", "Saboteur", "Visitors", "passes", "sabotage"]
