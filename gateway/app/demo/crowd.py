"""Hundreds of simulated clients in a process of their own (`loadtest.crowd`), and the streams that they read.

Each judges what it reads, message by message and by the digests of runs, and comes back as the SDKs do.
"""

import asyncio
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final

from gateway.adapters.client.publish_stream import StreamPublisher
from gateway.adapters.client.publisher import PublishError
from gateway.adapters.client.settings import StreamSettings
from gateway.adapters.embedded import mortal_command
from gateway.app.demo.until import until
from gateway.core.tasks import TaskOwner
from gateway.domain.operator_error import OperatorError

_MODULE: Final = "loadtest.crowd"
CLIENTS_PER_SESSION: Final = 50
"""At most."""
_LINE_BYTES: Final = 1024**2
_ANSWER_SECONDS: Final = 10.0
_BETWEEN_WRITES_SECONDS: Final = 0.5
_WORDS: Final = "It was the best of times, it was the worst of times, 那是最好的时代，那是最坏的时代 🕰️ and so on. "
_PATIENCE: Final = StreamSettings(request_seconds=4.0, connect_seconds=2.0)


@dataclass(frozen=True, slots=True)
class CrowdReport:
    """Since the crowd came."""

    attempts_by_second: dict[int, int]
    """By Unix second, those that the gateways refused included."""
    wrong: dict[str, int]
    """What must not be: lost, digest, gap ...; by name."""
    ended_runs: int


@dataclass(slots=True)
class CrowdStanding:
    """Of this moment."""

    live: int = 0
    """Clients that have a connection."""
    position: int = 0
    """Messages that the client has which has fewest."""
    returned: int = 0
    """Clients that were let in since the moment asked about."""
    last_live_at: float = 0.0


class Crowd:
    """One process. Ended by `leave`, by the end of this process, or not at all before that."""

    def __init__(self, process: asyncio.subprocess.Process, prefix: str, sessions: int, clients: int) -> None:
        self._process = process
        self._turn = asyncio.Lock()
        self.sessions = [f"{prefix}-{number}" for number in range(sessions)]
        self.size = sessions * clients
        self.clients_per_session = clients

    @staticmethod
    def is_there_to_start() -> bool:
        """An installation may have gone without the load tests."""
        return importlib.util.find_spec(_MODULE.partition(".")[0]) is not None

    @classmethod
    async def start(cls, urls: Sequence[str], size: int) -> "Crowd":
        """Its clients connect at once. `size` is rounded up to sessions of one size. Raises OperatorError."""
        if not cls.is_there_to_start():
            raise OperatorError(
                f"the simulated clients are not installed; {_MODULE} comes with the sources and the wheel"
            )
        prefix = f"crowd-{token_hex(3)}"
        sessions = -(-size // CLIENTS_PER_SESSION)
        clients = -(-size // sessions)
        options = {"urls": ",".join(urls), "prefix": prefix, "sessions": sessions, "clients": clients}
        words = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *mortal_command([sys.executable, "-m", _MODULE, *words]),
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LINE_BYTES,
            start_new_session=True,  # a Ctrl-C at the terminal is for the demo, which ends it
        )
        return cls(process, prefix, sessions, clients)

    async def standing(self, since: float = 0.0) -> CrowdStanding:
        """`since`: monotonic seconds. Raises OperatorError when the process does not answer; all questions do."""
        told = await self._ask(do="live", since=since)
        return CrowdStanding(told["live"], told["positions"], told["returned"], told["last_live_at"])

    async def report(self) -> CrowdReport:
        told = await self._ask(do="report")
        attempts = {int(second): count for second, count in told["attempts_by_second"].items()}
        return CrowdReport(attempts, told["wrong"], told["ended_runs"])

    async def use(self, urls: Sequence[str]) -> None:
        """Gateways that it knows from now on, as its own balancer."""
        await self._ask(do="urls", urls=list(urls))

    async def leave(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _ask(self, **asked: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the crowd was started without pipes")
        if stdin.is_closing():
            raise OperatorError("the simulated clients have ended")
        try:
            async with self._turn, asyncio.timeout(_ANSWER_SECONDS):
                stdin.write(json.dumps(asked).encode() + b"\n")
                answer: dict[str, Any] = json.loads(await stdout.readline())
        except (TimeoutError, ValueError, ConnectionError):
            raise OperatorError("the simulated clients do not answer") from None
        return answer


@dataclass(slots=True)
class CrowdStreams:
    """One run in each session, a line every half second, until `end`."""

    url: str
    sessions: Sequence[str]
    run: str
    failures: Counter[str] = field(default_factory=Counter)
    _is_over: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, owner: TaskOwner) -> None:
        for number, session in enumerate(self.sessions):
            phase = number / len(self.sessions) * _BETWEEN_WRITES_SECONDS
            self._tasks.append(owner.start("crowd-stream", self._publish(session, phase)))

    async def end(self, seconds: float) -> None:
        """Every run ends complete; what is not in the log within `seconds` is a failure."""
        self._is_over.set()
        if not await until(lambda: all(task.done() for task in self._tasks), seconds):
            self.failures["did not end"] += sum(not task.done() for task in self._tasks)

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _publish(self, session: str, phase_seconds: float) -> None:
        publisher = StreamPublisher(
            [self.url], session, self.run, options={"segment": "raw"}, settings=_PATIENCE
        )  # fmt: skip
        try:
            result = await publisher.publish(self._lines(phase_seconds))
        except PublishError as exc:
            self.failures[str(exc)] += 1
        else:
            if result.was_stopped:
                self.failures[f"stopped: {result.reason}"] += 1

    async def _lines(self, phase_seconds: float) -> AsyncIterator[str]:
        await asyncio.sleep(phase_seconds)
        number = 0
        while not self._is_over.is_set():
            yield f"{number}: {_WORDS}"
            number += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), _BETWEEN_WRITES_SECONDS)


Look = Callable[[CrowdStanding], bool]


async def until_crowd(crowd: Crowd, is_so: Look, seconds: float, since: float = 0.0) -> CrowdStanding | None:
    """The standing that first is so; None when none was in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not is_so(standing := await crowd.standing(since)):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
            return standing
    return None


__all__ = ["CLIENTS_PER_SESSION", "Crowd", "CrowdReport", "CrowdStanding", "CrowdStreams", "until_crowd"]
