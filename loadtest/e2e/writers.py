"""`python -m loadtest.e2e.writers --url U --prefix P --sessions N`: an open run in each session, by the SDK's producer.

Questions: `written` (messages so far), `end` (every run ends `complete`; session -> what went in). Token: E2E_TOKEN.
"""

import argparse
import asyncio
import hashlib
import os
import resource
from contextlib import suppress
from typing import Any, Final

from relayrouter import ProducerTiming, Publisher

from loadtest.e2e.inside import serve

WORDS: Final = "It was the best of times, it was the worst of times, 那是最好的时代，那是最坏的时代 🕰️ and so on. "
PATIENT: Final = ProducerTiming(request_timeout=10.0, backoff_base=0.1, backoff_max=1.0, give_up_after=180.0)
"""Longer than any fault that is made here."""


class Writers:
    def __init__(self, url: str, token: str, sessions: list[str], seconds_between: float) -> None:
        self._url = url
        self._token = token or None
        self._seconds_between = seconds_between
        self._is_over = asyncio.Event()
        self._messages = dict.fromkeys(sessions, 0)
        self._digests = {session: hashlib.sha256() for session in sessions}
        self._problems: dict[str, str] = {}
        self._tasks = [
            asyncio.create_task(self._write(session, number / len(sessions) * seconds_between))
            for number, session in enumerate(sessions)
        ]

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        match asked["do"]:
            case "written":
                return {"messages": sum(self._messages.values()), "problems": self._problems}
            case "end":
                self._is_over.set()
                await asyncio.gather(*self._tasks)
                return {
                    session: [count, self._digests[session].hexdigest(), self._problems.get(session, "")]
                    for session, count in self._messages.items()
                }
            case other:
                raise ValueError(other)

    async def _write(self, session: str, phase_seconds: float) -> None:
        await asyncio.sleep(phase_seconds)
        try:
            async with (
                Publisher(self._url, session=session, token=self._token, timing=PATIENT) as publisher,
                publisher.run("r", segment="raw") as run,
            ):
                while not self._is_over.is_set():
                    text = f"{self._messages[session]}: {WORDS}"
                    await run.write(text)
                    self._messages[session] += 1
                    self._digests[session].update(text.encode())
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._is_over.wait(), self._seconds_between)
        except Exception as exc:  # noqa: BLE001  whatever it was, the run is not what was promised
            self._problems[session] = f"{type(exc).__name__} after {self._messages[session]}: {exc}"[:300]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--seconds-between", type=float, default=2.0)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sessions = [f"{arguments.prefix}-{number}" for number in range(arguments.sessions)]
    writers = Writers(arguments.url, os.environ.get("E2E_TOKEN", ""), sessions, arguments.seconds_between)
    await serve(writers.answer)


if __name__ == "__main__":
    asyncio.run(main())
