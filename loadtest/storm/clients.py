"""One process full of SDK clients; says as JSON lines when all are live, and at the end what each of them did.

`python -m loadtest.storm.clients --url ... --count 500 --first 0`. A line on stdin ends it.
"""

import argparse
import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relayrouter import Session, StateEvent, connect
from relayrouter.states import State

OPENING_PER_SECOND = 150
"""The first connects come one after the other: the storm is what comes later."""


@dataclass(slots=True)
class Record:
    """On the monotonic clock, which all processes of a machine share."""

    attempts: list[float] = field(default_factory=list)
    dues: list[float] = field(default_factory=list)
    """When it meant to try again, whenever this machine got round to it."""
    lives: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    """When it noticed that its connection was gone."""
    busy: int = 0
    channel: str = ""
    position: int = 0
    repeats: int = 0
    holes: int = 0
    state: State = State.CONNECTING

    def on_state(self, event: StateEvent) -> None:
        now = time.monotonic()
        if self.state is State.LIVE and event.state is not State.LIVE:
            self.losses.append(now)
        self.state = event.state
        if event.retry_in is not None:
            self.dues.append(now + event.retry_in)
        if event.state is State.CONNECTING:
            self.attempts.append(now)
        elif event.state is State.LIVE:
            self.lives.append(now)
            self.channel = str(event.channel)
        elif event.state is State.BUSY:
            self.busy += 1


class Clients:
    def __init__(self, url: str, count: int, first: int) -> None:
        self._url = url
        self._names = [f"storm-{first + number}" for number in range(count)]
        self.records = {name: Record() for name in self._names}
        self._sessions: list[Session] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        for name in self._names:
            session = connect(self._url, session=name, client="c", from_="start")
            session.on("state", self.records[name].on_state)
            self._sessions.append(session)
            self._tasks.append(asyncio.create_task(self._read(session, self.records[name])))
            await asyncio.sleep(1 / OPENING_PER_SECOND)

    async def _read(self, session: Session, record: Record) -> None:
        async with session:
            async for message in session:
                if message.seq is None:
                    record.holes += 1
                    continue
                record.repeats += message.seq <= record.position
                record.holes += message.first_seq > record.position + 1 if message.first_seq else 0
                record.position = max(record.position, message.seq)

    def live_since(self, moment: float) -> int:
        return sum(bool(record.lives) and record.lives[-1] > moment for record in self.records.values())

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions), return_exceptions=True)
        await asyncio.wait(self._tasks, timeout=10)


def answer(clients: Clients, asked: dict[str, Any]) -> dict[str, Any]:
    match asked["do"]:
        case "live":
            return {"live": clients.live_since(asked["since"])}
        case "report":
            fields = ("attempts", "dues", "lives", "losses", "busy", "channel", "position", "repeats", "holes")
            return {
                "records": {
                    name: {field: getattr(record, field) for field in fields}
                    for name, record in clients.records.items()
                }
            }
        case other:
            raise ValueError(other)


async def main(write: Callable[[dict[str, Any]], None]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    clients = Clients(arguments.url, arguments.count, arguments.first)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await clients.open()
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection over a thousand clients stops all of them for a tenth of a second
    write({"opened": arguments.count})
    while line := await reader.readline():
        asked = json.loads(line)
        if asked["do"] == "exit":
            break
        write(answer(clients, asked))
    await clients.close()


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(_write))
