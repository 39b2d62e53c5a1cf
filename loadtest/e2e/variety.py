"""`python -m loadtest.e2e.variety --url U`: a little of all that dashboards show.

Answers that are read, interrupted and come to their end, inputs and their consumer, readers that come back. The token
($E2E_TOKEN) needs all scopes. Question: `problem`: why it ended, empty while it goes on.
"""

import argparse
import asyncio
import os
from secrets import token_hex
from typing import Any, Final

from relayrouter import Inbox, Interrupted, Publisher, Session, connect

from loadtest.e2e.inside import serve

TALKS: Final = 8
"""So that each of a few pods has some readers, wherever the Service sends them."""
WORDS: Final = 30
PAUSE_SECONDS: Final = 0.05
AWAY_SECONDS: Final = 10.0
"""Oftener than `limits.takeovers_per_minute` it would be kept waiting."""


class Variety:
    def __init__(self, url: str, token: str) -> None:
        self._running = asyncio.create_task(self._run(url, token))

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["do"] != "problem":
            raise ValueError(asked["do"])
        return {"problem": repr(self._running.exception()) if self._running.done() else ""}

    async def _run(self, url: str, token: str) -> None:
        async with Inbox(url, token=token) as inbox, asyncio.TaskGroup() as tasks:
            tasks.create_task(_consume(inbox))
            for _ in range(TALKS):
                tasks.create_task(_talk(url, token, f"talk-{token_hex(4)}"))


async def _talk(url: str, token: str, name: str) -> None:
    async with connect(url, session=name, token=token) as session, Publisher(url, session=name, token=token) as agent:
        session.on("message", lambda _: None)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_answer(agent, session))
            tasks.create_task(_come_and_go(url, token, name))


async def _answer(agent: Publisher, session: Session) -> None:
    """A run after the other; every second one is interrupted by its reader, who has seen it by then."""
    number = 0
    while True:
        number += 1
        name = f"r{number}"
        try:
            async with agent.run(name) as run:
                for word in range(WORDS):
                    await run.write(f"word {word} ")
                    await asyncio.sleep(PAUSE_SECONDS)
                    if number % 2 and word >= WORDS // 2 and session.text(name):
                        await session.interrupt(name)
        except Interrupted:
            await session.send({"text": f"enough of {number}"})


async def _come_and_go(url: str, token: str, name: str) -> None:
    """A second reader, who goes on where it was when it went."""
    cursor = None
    while True:
        async with connect(url, session=name, token=token, client="now-and-then", cursor=cursor) as session:
            async for _ in session:
                break
            cursor = session.cursor
        await asyncio.sleep(AWAY_SECONDS)


async def _consume(inbox: Inbox) -> None:
    async for item in inbox:
        await item.ack()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    await serve(Variety(parser.parse_args().url, os.environ["E2E_TOKEN"]).answer)


if __name__ == "__main__":
    asyncio.run(main())
