"""A crowd over several processes, and the streams that it reads: what storm and capacity runs are made of."""

import asyncio
import json
import math
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from relayrouter import ProducerTiming, Publisher

LINE_BYTES: Final = 256 * 1024 * 1024
END_SECONDS: Final = 10.0
BEHIND: Final = 15
"""Niceness of the clients, which in a cluster have machines of their own: who is measured has the cores first. What
arrived late at a client for that alone is not counted: its kernel tells when it came (`loadtest.crowd.link`)."""
WORDS: Final = "It was the best of times, it was the worst of times, 那是最好的时代，那是最坏的时代 🕰️ and so on. "
RETRYING: Final = ProducerTiming(request_timeout=10.0, backoff_base=0.1, backoff_max=1.0, give_up_after=120.0)


class Crowds:
    """All processes as one."""

    def __init__(self, processes: "Sequence[asyncio.subprocess.Process]") -> None:
        self._processes = processes

    async def ask(self, **asked: Any) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(self._ask(process, asked) for process in self._processes)))

    async def _ask(self, process: asyncio.subprocess.Process, asked: dict[str, Any]) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        line = await process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the crowd ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

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
            options = {
                "urls": ",".join(urls),
                "sessions": share + (number < rest),
                "first": number * share + min(number, rest),
                "clients": clients,
                "idle": idle_share,
                "seed": number + 1,
            }
            words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "loadtest.crowd", *words, stdin=pipe, stdout=pipe, limit=LINE_BYTES
            )
            started.append(process)
            os.setpriority(os.PRIO_PROCESS, process.pid, BEHIND)
        yield Crowds(started)
    finally:
        for process in started:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class Streams:
    """One open run in each session, written a little every second until `end`; all of it by the SDK's producer."""

    def __init__(self, urls: Sequence[str], sessions: int, seconds_between: float, prefix: str = "crowd") -> None:
        self._urls = list(urls)
        self._sessions = [f"{prefix}-{number}" for number in range(sessions)]
        self._seconds_between = seconds_between
        self._is_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.failures: list[str] = []

    def start(self) -> None:
        for number, session in enumerate(self._sessions):
            phase = number / len(self._sessions) * self._seconds_between
            first = number % len(self._urls)  # a balancer spreads them, also those of a gateway that died
            urls = [*self._urls[first:], *self._urls[:first]]
            if number // len(self._urls) % 2:
                urls[1:] = reversed(urls[1:])
            self._tasks.append(asyncio.create_task(self._write(session, urls, phase)))

    async def end(self) -> None:
        """Every run ends `complete`."""
        self._is_over.set()
        await asyncio.gather(*self._tasks)

    async def _write(self, session: str, urls: Sequence[str], phase: float) -> None:
        """By a clock of its own, as a model does: after a fault those that waited for it would else write in step."""
        await asyncio.sleep(phase)
        clock, number = asyncio.get_running_loop().time, 0
        due = clock()
        try:
            async with (
                Publisher(urls, session=session, timing=RETRYING) as publisher,
                publisher.run("r", segment="raw") as run,
            ):
                while not self._is_over.is_set():
                    await run.write(f"{number}: {WORDS}")
                    number += 1
                    due += self._seconds_between * max(1, math.ceil((clock() - due) / self._seconds_between))
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_over.wait(), due - clock())
        except Exception as exc:  # noqa: BLE001  whatever it was, the run is not what was promised
            self.failures.append(f"{session} after {number}: {type(exc).__name__} {exc}")


def percentile(ascending: Sequence[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))] if ascending else float("nan")


__all__ = ["Crowds", "Streams", "crowds", "percentile"]
