"""`relayrouter demo --check`: the demo without a person. Faults in mid-stream, then every text against its source."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from gateway.app.demo.stage import Stage

_FIRST_FAULT_SECONDS = 1.5
_BETWEEN_FAULTS_SECONDS = (1.8, 3.2)
_FREEZE_SECONDS = 4.0
_CUT_SECONDS = 1.5
_SETTLE_SECONDS = 30.0
"""How long readers may take to have everything once the last run has ended."""
FAULTS_NEEDED = 2


class Saboteur:
    """Breaks something every few seconds while a run is open, kinds in turn: kill, drain, freeze, cut."""

    def __init__(self, stage: Stage, rng: random.Random) -> None:
        self._stage = stage
        self._rng = rng

    async def run(self) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [self._kill, self._drain, self._freeze, self._cut]
        await asyncio.sleep(_FIRST_FAULT_SECONDS)
        while True:
            for kind in kinds:
                while self._stage.open_run is None or not self._is_watched():  # noqa: ASYNC110  see the next line
                    await asyncio.sleep(0.05)  # a fault between two runs, or that nobody sees, proves nothing
                await kind()
                await asyncio.sleep(self._rng.uniform(*_BETWEEN_FAULTS_SECONDS))

    def _is_watched(self) -> bool:
        return self._stage.readers_at(self._stage.busiest()) > 0

    async def _kill(self) -> None:
        self._stage.kill(self._stage.busiest())

    async def _drain(self) -> None:
        self._stage.terminate(self._stage.busiest())

    async def _freeze(self) -> None:
        await self._stage.freeze(self._stage.busiest(), _FREEZE_SECONDS)

    async def _cut(self) -> None:
        await self._stage.cut_redis(_CUT_SECONDS)


async def wait_until_complete(stage: Stage) -> bool:
    """True when every reader has every run's end; False after half a minute."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while not stage.is_complete():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)  # readers are tasks of their own; their progress has no single event
    return True


def passes(result: dict[str, object]) -> bool:
    """The rule for exit code 0."""
    faults = result["faults"]
    clean = result["lost"] == result["repeated"] == result["reordered"] == 0
    enough = isinstance(faults, list) and len(faults) >= FAULTS_NEEDED
    return clean and enough and result["digests_equal"] is True and result["received"] == result["published"]


__all__ = ["Saboteur", "passes", "wait_until_complete"]
