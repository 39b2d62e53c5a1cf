"""The storm from its beginning to its end, and its figures. Owns the gateway, its server and the clients' processes."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from loadtest.bench.cluster import start_gently
from loadtest.plain_http import NoAnswer
from loadtest.processes import Gateway
from loadtest.publisher import PublishFailed
from loadtest.stage import Stage

LINE_BYTES: Final = 64 * 1024 * 1024
OPEN_SECONDS: Final = 120.0
LIVE_BOUND_SECONDS: Final = 35.0
"""From the moment that a gateway is back until all are live: the longest wait of an SDK (30 s), and its connect."""
SLOT_SECONDS: Final = 0.1
MAX_SLOT_SHARE: Final = 0.15
FEW_CLIENTS: Final = 1000
MAX_SLOT_SHARE_OF_FEW: Final = 0.21
"""Below a thousand clients chance alone makes slots uneven: three standard deviations for 200."""
LOOK_SECONDS: Final = 0.05
EXPECTED_OUTCOMES: Final = ("accepted", "busy", "unavailable", "left")
"""Who is let in, who is told to come later, and who gave up before it was told."""


class StormFailed(Exception):
    pass


@dataclass(slots=True)
class Figures:
    clients: int
    down_seconds: float = 0.0
    """From the kill until the successor listened."""
    live_seconds: list[float] = field(default_factory=list)
    """From then until each client was live again, ascending."""
    attempts: list[float] = field(default_factory=list)
    """Seconds after the kill, ascending, of all clients."""
    dues: list[float] = field(default_factory=list)
    """When each attempt was meant to be, after its own client noticed: thousands of clients share a processor here."""
    most_admitted: int = 0
    """In a second."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """What the successor said to connects."""
    refused_clients: int = 0
    channels: Counter[str] = field(default_factory=Counter)
    unready_looks: int = 0
    """How often /readyz of the successor was not 200 while they came back."""
    wrong: list[str] = field(default_factory=list)
    """Of what was delivered."""

    @property
    def slots(self) -> list[int]:
        """Attempts in each tenth of the first second after the kill, by the clock."""
        return _tenths(self.attempts)

    @property
    def due_slots(self) -> list[int]:
        """The same by when each was meant to be: what the rule alone makes, whatever the machine."""
        return _tenths(self.dues)

    @property
    def most_of_a_slot(self) -> float:
        total = sum(self.slots)
        return max(self.slots) / total if total else 0.0

    @property
    def per_second(self) -> list[int]:
        counts = Counter(int(attempt) for attempt in self.attempts)
        return [counts[number] for number in range(max(counts, default=-1) + 1)]

    def problems(self) -> list[str]:
        """Which of the promises was not kept. Empty: all were."""
        found = list(self.wrong)
        if self.most_of_a_slot > (MAX_SLOT_SHARE if self.clients >= FEW_CLIENTS else MAX_SLOT_SHARE_OF_FEW):
            found.append(f"a tenth of the first second had {self.most_of_a_slot:.1%} of its attempts: {self.slots}")
        if len(self.live_seconds) < self.clients:
            found.append(f"{self.clients - len(self.live_seconds)} clients did not come back")
        elif self.live_seconds[-1] > LIVE_BOUND_SECONDS:
            found.append(f"the last client was live after {self.live_seconds[-1]:.1f} s")
        odd = {name: count for name, count in self.outcomes.items() if name not in EXPECTED_OUTCOMES}
        if odd:
            found.append(f"connects ended oddly: {odd}")
        if self.outcomes["accepted"] > self.clients * 1.02:
            found.append(f"{self.outcomes['accepted']} connects were admitted for {self.clients} clients")
        return found


class _Process:
    """Clients in a process of their own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, url: str, count: int, first: int) -> "_Process":
        command = ("-m", "loadtest.storm.clients", "--url", url, "--count", str(count), "--first", str(first))
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(sys.executable, *command, stdin=pipe, stdout=pipe, limit=LINE_BYTES)
        )

    async def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise StormFailed("a process of clients ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def ask(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        return await self.read()

    async def end(self) -> None:
        if self._process.returncode is None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.write(b'{"do": "exit"}\n')
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), 20)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


class Storm:
    def __init__(self, folder: Path, clients: int, processes: int) -> None:
        self._folder = folder
        self._clients = clients
        self._count = processes
        self._processes: list[_Process] = []

    async def blow(self) -> Figures:
        """Raises StormFailed."""
        async with AsyncExitStack() as stack:
            stage = await stack.enter_async_context(Stage(self._folder, 0))
            server = stage.server()
            gateway = await stage.gateway(server.url)
            for number in range(self._count):
                share = self._clients // self._count + (number < self._clients % self._count)
                first = sum(self._clients // self._count + (n < self._clients % self._count) for n in range(number))
                process = await _Process.start(gateway.url, share, first)
                stack.push_async_callback(process.end)
                self._processes.append(process)
            async with asyncio.timeout(OPEN_SECONDS):
                await asyncio.gather(*(process.read() for process in self._processes))
                await self._until_live(0.0)
            await self._publish(stage, gateway, "before")
            figures = Figures(self._clients)
            killed_at = time.monotonic()
            await gateway.kill()
            await start_gently(gateway)
            back_at = time.monotonic()
            figures.down_seconds = back_at - killed_at
            await self._watch(gateway, figures, back_at)
            await self._publish(stage, gateway, "after")
            await self._settle()
            await self._fill(figures, gateway, killed_at, back_at)
            return figures

    async def _until_live(self, since: float) -> None:
        while True:
            if await self._live(since) >= self._clients:
                return
            await asyncio.sleep(LOOK_SECONDS)

    async def _live(self, since: float) -> int:
        answers = await asyncio.gather(*(process.ask(do="live", since=since) for process in self._processes))
        return sum(int(answer["live"]) for answer in answers)

    async def _watch(self, gateway: Gateway, figures: Figures, back_at: float) -> None:
        """Until all are back: how many are let in, and whether the gateway stays ready."""
        admitted: list[tuple[float, float]] = []
        deadline = time.monotonic() + LIVE_BOUND_SECONDS + 15
        while time.monotonic() < deadline:
            with suppress(NoAnswer):
                accepted = await gateway.metric("connects_total", outcome="accepted")
                admitted.append((time.monotonic(), accepted))
                figures.unready_looks += (await gateway.admin("/readyz")).status != 200
            if await self._live(back_at - figures.down_seconds) >= self._clients:
                break
            await asyncio.sleep(4 * LOOK_SECONDS)
        figures.most_admitted = most_in_a_second(admitted)

    async def _publish(self, stage: Stage, gateway: Gateway, text: str) -> None:
        """One message to every tenth client, to see that nothing is lost or repeated."""
        for number in range(0, self._clients, 10):
            publisher = stage.publisher([gateway], f"storm-{number}")
            try:
                await publisher.publish({"kind": "data", "data": {"text": text}})
            except PublishFailed as exc:
                raise StormFailed(str(exc)) from exc

    async def _settle(self) -> None:
        """What was published last is with its readers."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            records = await self._records()
            if all(records[f"storm-{number}"]["position"] == 2 for number in range(0, self._clients, 10)):
                return
            await asyncio.sleep(0.3)

    async def _records(self) -> dict[str, dict[str, Any]]:
        answers = await asyncio.gather(*(process.ask(do="report") for process in self._processes))
        return {name: record for answer in answers for name, record in answer["records"].items()}

    async def _fill(self, figures: Figures, gateway: Gateway, killed_at: float, back_at: float) -> None:
        records = await self._records()
        for name, record in records.items():
            attempts = [at for at in record["attempts"] if at > killed_at]
            lost_at = min((at for at in record["losses"] if at > killed_at), default=killed_at)
            figures.attempts += [at - killed_at for at in attempts]
            figures.dues += [at - lost_at for at in record["dues"] if at > lost_at]
            lives = [at for at in record["lives"] if at > killed_at]
            if lives:
                figures.live_seconds.append(max(lives[0] - back_at, 0.0))
            figures.refused_clients += bool(record["busy"])
            figures.channels[record["channel"]] += 1
            if record["repeats"] or record["holes"]:
                figures.wrong.append(f"{name}: {record['repeats']} repeated, {record['holes']} missing")
        for number in range(0, self._clients, 10):
            if records[f"storm-{number}"]["position"] != 2:
                figures.wrong.append(f"storm-{number} has message {records[f'storm-{number}']['position']} and not 2")
        figures.attempts.sort()
        figures.live_seconds.sort()
        figures.outcomes = Counter({name: int(count) for name, count in (await outcomes_of(gateway)).items()})


def _tenths(moments: Sequence[float]) -> list[int]:
    counts = Counter(int(moment / SLOT_SECONDS) for moment in moments if moment < 1)
    return [counts[number] for number in range(10)]


async def outcomes_of(gateway: Gateway) -> dict[str, float]:
    """Of its connects."""
    found: dict[str, float] = {}
    for line in (await gateway.admin("/metrics")).body.decode().splitlines():
        series, _, value = line.rpartition(" ")
        name, _, label = series.partition('{outcome="')
        if name == "relayrouter_connects_total" and float(value):
            found[label.rstrip('"}')] = float(value)
    return found


def most_in_a_second(samples: Sequence[tuple[float, float]]) -> int:
    """Of (moment, total so far): the steepest rise over a second or a little more."""
    most = 0.0
    for index, (begin, before) in enumerate(samples):
        for moment, total in samples[index + 1 :]:
            if moment - begin >= 1:
                most = max(most, (total - before) / (moment - begin))
                break
    return int(most)


__all__ = ["LIVE_BOUND_SECONDS", "Figures", "Storm", "StormFailed", "most_in_a_second", "outcomes_of"]
