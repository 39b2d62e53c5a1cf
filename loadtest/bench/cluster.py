"""A cluster of real gateways as operators run it, on one machine: defaults, and what its admissions were."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from loadtest.plain_http import NoAnswer
from loadtest.processes import Gateway, Server

WATCH_SECONDS: Final = 0.5
LAST_PRIORITY: Final = 19
ENVIRON: Final = {"RR_AUTH__MODE": "none"}


@asynccontextmanager
async def cluster(folder: Path, count: int, **environ: str) -> AsyncIterator[list[Gateway]]:
    server = Server(folder / "valkey").start()
    gateways = [
        Gateway(f"gw-{number}", server.url, folder / f"gw-{number}.log", {**ENVIRON, **environ})
        for number in range(count)
    ]
    try:
        await asyncio.gather(*(gateway.start() for gateway in gateways))
        yield gateways
    finally:
        for gateway in gateways:
            await gateway.end()
        server.end()


async def start_gently(gateway: Gateway) -> None:
    """A successor that takes no time from the others while it starts: in a cluster it does that on another machine."""
    before = None if gateway.process is None else gateway.process.pid
    starting = asyncio.create_task(gateway.start())
    while not starting.done() and (gateway.process is None or gateway.pid == before):  # noqa: ASYNC110  no event tells
        await asyncio.sleep(0.002)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, gateway.pid, LAST_PRIORITY)
    await starting
    with suppress(OSError):  # only root may take it back
        os.setpriority(os.PRIO_PROCESS, gateway.pid, 0)


class Admissions:
    """Who was admitted in each second, by every life of every gateway: `/admin/admission`, asked twice a second."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self._gateways = gateways
        self._seconds: dict[str, dict[int, int]] = {}
        """Gateway id -> Unix second -> resuming clients."""

    async def watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(WATCH_SECONDS)

    async def look(self) -> None:
        for gateway in self._gateways:
            ident = gateway.ident
            with suppress(NoAnswer):
                told = (await gateway.admin("/admin/admission", timeout_seconds=2)).json()
                seconds = self._seconds.setdefault(ident, {})
                seconds.update({int(row["at"]): row["resume"] for row in told["by_second"]})

    @property
    def most(self) -> int:
        """By one gateway in one second."""
        return max((count for seconds in self._seconds.values() for count in seconds.values()), default=0)

    def over_budget(self, per_second: float, burst: int) -> int:
        """Windows of any length in which a gateway admitted more than its bucket allows."""
        return sum(_over(seconds, per_second, burst) for seconds in self._seconds.values())


def _over(by_second: dict[int, int], per_second: float, burst: int) -> int:
    over = 0
    moments = sorted(by_second)
    for index, begin in enumerate(moments):
        total = 0
        for end in moments[index:]:
            total += by_second[end]
            over += total > burst + per_second * (end - begin + 1)
    return over


__all__ = ["Admissions", "cluster", "start_gently"]
