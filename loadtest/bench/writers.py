"""Producers of many runs in one process, all by the SDK: `python -m loadtest.bench.writers --urls A,B --sessions 300`.

Each writes a line every `--every` seconds from its start on. `{"do": "end"}` ends all runs and answers
`{"failures": [...]}`, what was not as promised; the end of its input ends the process.
"""

import argparse
import asyncio
import json
import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from relayrouter import ProducerTiming, Publisher

WORDS: Final = "It was the best of times, it was the worst of times, 那是最好的时代，那是最坏的时代 🕰️ and so on. "
RETRYING: Final = ProducerTiming(request_timeout=10.0, backoff_base=0.1, backoff_max=1.0, give_up_after=120.0)


class Writers:
    """One open run in each session."""

    def __init__(self, urls: Sequence[str], sessions: Sequence[str], seconds_between: float) -> None:
        self._urls = list(urls)
        self._sessions = list(sessions)
        self._seconds_between = seconds_between
        self._is_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._failures: list[str] = []

    def start(self) -> None:
        for number, session in enumerate(self._sessions):
            phase = number / len(self._sessions) * self._seconds_between
            self._tasks.append(asyncio.create_task(self._write(session, self._urls_of(number), phase)))

    async def end(self) -> list[str]:
        """Every run ends `complete`. What failed."""
        self._is_over.set()
        await asyncio.gather(*self._tasks)
        return self._failures

    def _urls_of(self, number: int) -> list[str]:
        """As a balancer spreads them; where those of a gateway that died go, the SDK leaves to chance."""
        first = number % len(self._urls)
        return [*self._urls[first:], *self._urls[:first]]

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
            self._failures.append(f"{session} after {number}: {type(exc).__name__} {exc}")


async def _serve(writers: Writers) -> None:
    writers.start()
    while line := await asyncio.to_thread(sys.stdin.readline):
        if json.loads(line)["do"] == "end":
            print(json.dumps({"failures": await writers.end()}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", required=True, help="comma between them")
    parser.add_argument("--prefix", default="crowd")
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two writes of a run")
    arguments = parser.parse_args()
    sessions = [f"{arguments.prefix}-{number}" for number in range(arguments.sessions)]
    asyncio.run(_serve(Writers(arguments.urls.split(","), sessions, arguments.every)))


if __name__ == "__main__":
    main()
