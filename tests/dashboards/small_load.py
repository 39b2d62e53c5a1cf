"""A little of everything that the dashboards show: readers that move, runs, interrupts, inputs and their consumer."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from relayrouter import Inbox, Interrupted, Publisher, Session, connect

from loadtest.processes import Gateway
from loadtest.publisher import Ledger
from loadtest.scenes import seat
from loadtest.stage import Stage

WORDS = 30
MOVES_EVERY_MS = 1_500
PAUSE_SECONDS = 0.02


@asynccontextmanager
async def small_load(stage: Stage, gateways: Sequence[Gateway]) -> AsyncIterator[None]:
    """Until the block ends, at both of two gateways. What fails in it fails the block."""
    urls = [gateway.url for gateway in gateways]
    await seat(stage, "flow", gateways, 4, move_every_ms=MOVES_EVERY_MS)
    await seat(stage, "ebb", gateways, 4, move_every_ms=MOVES_EVERY_MS)
    async with (
        stage.flow(stage.publisher(gateways[:1], "flow", Ledger()), per_second=50),
        stage.flow(stage.publisher(gateways[1:], "ebb", Ledger()), per_second=50),
        connect(urls, session="talk") as session,
        Publisher(urls, session="talk") as agent,
        Inbox(urls) as inbox,
        asyncio.TaskGroup() as tasks,
    ):
        session.on("message", lambda _: None)
        running = [
            tasks.create_task(_answer(agent, session)),
            tasks.create_task(_consume(inbox)),
        ]
        yield
        for task in running:
            task.cancel()


async def _answer(agent: Publisher, session: Session) -> None:
    """A run after the other; every second one is interrupted by its reader."""
    number = 0
    while True:
        number += 1
        try:
            async with agent.run(f"r{number}") as run:
                for word in range(WORDS):
                    await run.write(f"word {word} ")
                    await asyncio.sleep(PAUSE_SECONDS)
                    if number % 2 and word == WORDS // 2:
                        await session.interrupt(f"r{number}")
        except Interrupted:
            await session.send({"text": f"enough of {number}"})


async def _consume(inbox: Inbox) -> None:
    async for item in inbox:
        await item.ack()


__all__ = ["small_load"]
