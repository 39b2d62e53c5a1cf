"""A crowd over several processes, and one that writes what it reads: what storm and capacity runs are made of."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

LINE_BYTES: Final = 256 * 1024 * 1024
ANSWER_SECONDS: Final = 180.0
"""Longer than a producer goes on trying to end its run (`loadtest.bench.writers`)."""
BEHIND: Final = 15
"""Niceness of readers and producers, which in a cluster have machines of their own: who is measured has the cores
first. What a reader takes late for that alone does not count: its kernel tells when it came (`loadtest.crowd.link`)."""


class Crowds:
    """All processes as one."""

    def __init__(self, processes: "Sequence[asyncio.subprocess.Process]") -> None:
        self._processes = processes

    async def ask(self, **asked: Any) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(_ask(process, asked) for process in self._processes)))

    async def live(self) -> int:
        return sum(answer["live"] for answer in await self.ask(do="live"))

    async def until_live(self, count: int, seconds: float) -> float:
        """The moment (monotonic) at which the last one became live. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                answers = await self.ask(do="live")
                if sum(answer["live"] for answer in answers) >= count:
                    return max(float(answer["last_live_at"]) for answer in answers)
                await asyncio.sleep(0.2)

    async def end_phase(self) -> tuple[list[float], int, int]:
        """Delivery times in ms, ascending, of the clients that kept their socket; how many these were; the others."""
        answers = await self.ask(do="phase")
        times = sorted(value for answer in answers for value in answer["times_ms"])
        return times, sum(answer["stayed"] for answer in answers), sum(answer["moved"] for answer in answers)

    async def report(self) -> tuple["Counter[str]", "Counter[str]", "Counter[int]", int]:
        """Counts, what was wrong, attempts by Unix second, ended runs."""
        counts: Counter[str] = Counter()
        wrong: Counter[str] = Counter()
        attempts: Counter[int] = Counter()
        ended = 0
        for answer in await self.ask(do="report"):
            counts.update(answer["counts"])
            wrong.update(answer["wrong"])
            attempts.update({int(second): count for second, count in answer["attempts_by_second"].items()})
            ended += answer["ended_runs"]
        return counts, wrong, attempts, ended


@asynccontextmanager
async def crowds(
    urls: Sequence[str], processes: int, *, sessions: int, clients: int, idle: int = 0
) -> AsyncIterator[Crowds]:
    """`sessions` and `idle` are of all processes together; each divides them evenly."""
    started = []
    try:
        for number in range(processes):
            share, rest = divmod(sessions, processes)
            idle_share = idle // processes + (number < idle % processes)
            started.append(
                await _start(
                    "loadtest.crowd",
                    urls=",".join(urls),
                    sessions=share + (number < rest),
                    first=number * share + min(number, rest),
                    clients=clients,
                    idle=idle_share,
                    seed=number + 1,
                )
            )
        yield Crowds(started)
    finally:
        for process in started:
            await _stop(process)


class Streams:
    """One open run in each session, written a little every few seconds until `end` (`loadtest.bench.writers`)."""

    def __init__(self, process: "asyncio.subprocess.Process") -> None:
        self._process = process
        self.failures: list[str] = []

    async def end(self) -> None:
        """Every run ends `complete`; which did not, is in `failures`."""
        self.failures += (await _ask(self._process, {"do": "end"}))["failures"]


@asynccontextmanager
async def streams(urls: Sequence[str], sessions: int, seconds_between: float) -> AsyncIterator[Streams]:
    """They begin at once."""
    process = await _start("loadtest.bench.writers", urls=",".join(urls), sessions=sessions, every=seconds_between)
    try:
        yield Streams(process)
    finally:
        await _stop(process)


async def _start(module: str, **options: object) -> "asyncio.subprocess.Process":
    """One that answers JSON lines, behind everybody who is measured."""
    words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *words, stdin=pipe, stdout=pipe, limit=LINE_BYTES
    )
    os.setpriority(os.PRIO_PROCESS, process.pid, BEHIND)
    return process


async def _ask(process: "asyncio.subprocess.Process", asked: dict[str, Any]) -> dict[str, Any]:
    """Raises TimeoutError."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    async with asyncio.timeout(ANSWER_SECONDS):
        line = await process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the load ended: its error output is above")
    answer: dict[str, Any] = json.loads(line)
    return answer


async def _stop(process: "asyncio.subprocess.Process") -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def percentile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))] if ascending else float("nan")


__all__ = ["Crowds", "Streams", "crowds", "percentile", "streams"]
