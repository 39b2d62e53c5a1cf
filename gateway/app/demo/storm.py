"""A storm: hundreds of simulated clients read streams, one gateway is killed, and all are back, with everything.

The crowd stays afterwards, with nothing to read, until it is sent home: it is what a rebalance moves.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import aiohttp

from gateway.app.demo.crowd import Crowd, CrowdReport, CrowdStreams, until_crowd
from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.core.tasks import TaskOwner
from gateway.domain.operator_error import OperatorError

CLIENTS: Final = 500
_LIVE_SECONDS: Final = 40.0
"""The longest wait of an SDK is 30 s."""
_FIRST_MESSAGES: Final = 2
"""Of its stream each client has before the kill."""
_AFTERWARDS_SECONDS: Final = 1.0
"""The streams go on a little when all are back."""
_END_SECONDS: Final = 20.0
_ASK_SECONDS: Final = 3.0
_BETWEEN_LOOKS_SECONDS: Final = 0.3


@dataclass(slots=True)
class StormReport:
    """`seconds` and `lost` are None until they are known."""

    clients: int
    phase: str = "the crowd comes"
    """In words, for a person."""
    live: int = 0
    killed: str = ""
    returned: int = 0
    """Clients that had to come back."""
    seconds: float | None = None
    """From the kill until the last one was live."""
    attempts_by_second: list[int] = field(default_factory=list)
    """From the kill on, by all clients, refused ones included."""
    admitted_by_second: list[int] = field(default_factory=list)
    """By all gateways together."""
    lost: int | None = None
    """Messages, bytes, runs that any client lacks or has not as they were written."""
    wrong: dict[str, int] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    def judge(self, told: CrowdReport, expected_runs: int, failures: Mapping[str, int]) -> None:
        """`expected_runs`: ends of runs that all clients together must have read; `failures`: of the publishers."""
        self.wrong = dict(Counter(told.wrong) + Counter(failures))
        self.lost = sum(self.wrong.values()) + max(0, expected_runs - told.ended_runs)
        self.phase = "over"

    @property
    def words(self) -> str:
        if self.lost is None:
            return f"storm of {self.clients}: {self.phase}"
        return (
            f"storm of {self.clients}: {self.killed} killed, {self.returned} clients back after {self.seconds} s, "
            f"lost {self.lost}"
        )

    @property
    def passed(self) -> bool:
        return self.lost == 0 and self.seconds is not None


class Storms:
    """One at a time. `busiest` is who shall be killed; `relay_url` is where the crowd's streams are written to."""

    def __init__(
        self,
        gateways: Gateways,
        relay_url: str,
        owner: TaskOwner,
        kill: Callable[[GatewayProcess], bool],
        busiest: Callable[[], GatewayProcess | None],
        note: Callable[[str], None],
    ) -> None:
        self._gateways = gateways
        self._relay_url = relay_url
        self._owner = owner
        self._kill = kill
        self._busiest = busiest
        self._note = note
        self._crowd: Crowd | None = None
        self._told: list[str] = []
        """The gateways that the crowd knows."""
        self._runs = 0
        """That the crowd read, in each session."""
        self.report: StormReport | None = None
        """Of the running one, or the last."""
        self.is_running = False

    @property
    def crowd_size(self) -> int:
        return 0 if self._crowd is None else self._crowd.size

    async def run(self, clients: int = CLIENTS) -> bool:
        """False: one runs already, or it could not be. What came of it is in `report`."""
        if self.is_running:
            return False
        self.is_running = True
        report = self.report = StormReport(clients)
        try:
            await self._storm(report)
        except OperatorError as exc:
            report.phase = str(exc)
            self._note(f"storm: {exc}")
            await self.send_home()
            return False
        except asyncio.CancelledError:
            await self.send_home()  # a question to it may be without its answer
            raise
        finally:
            self.is_running = False
        return True

    async def send_home(self) -> None:
        """The crowd leaves."""
        crowd, self._crowd = self._crowd, None
        if crowd is not None:
            await crowd.leave()

    async def tell_gateways(self) -> None:
        """So that the crowd finds a new one, and asks no dead one for ever."""
        urls = self._gateways.urls
        if self._crowd is not None and urls and urls != self._told:
            self._told = urls
            with suppress(OperatorError):  # whoever asks it next will find out
                await self._crowd.use(urls)

    # ---- one storm -----------------------------------------------------------------------------------------------

    async def _storm(self, report: StormReport) -> None:
        crowd = await self._gather(report)
        self._runs += 1
        streams = CrowdStreams(self._relay_url, crowd.sessions, f"storm-{self._runs}")
        try:
            streams.start(self._owner)
            await self._hit(report, crowd)
            await asyncio.sleep(_AFTERWARDS_SECONDS)
            report.phase = "the streams end"
            await streams.end(_END_SECONDS)
        finally:
            streams.cancel()
        await self._judge(report, crowd, streams.failures)

    async def _gather(self, report: StormReport) -> Crowd:
        """All of them live."""
        if self._crowd is not None and self._crowd.size < report.clients:
            await self.send_home()
        if self._crowd is None:
            self._told, self._runs = self._gateways.urls, 0
            self._crowd = await Crowd.start(self._told, report.clients)
        crowd = self._crowd
        report.clients = crowd.size
        standing = await until_crowd(crowd, lambda now: now.live == crowd.size, _LIVE_SECONDS)
        if standing is None:
            raise OperatorError("the crowd did not get in")
        report.live = standing.live
        return crowd

    async def _hit(self, report: StormReport, crowd: Crowd) -> None:
        """Everybody reads, a gateway dies, everybody is back."""
        report.phase = "all read"
        before = (await crowd.standing()).position
        if await until_crowd(crowd, lambda now: now.position >= before + _FIRST_MESSAGES, _LIVE_SECONDS) is None:
            raise OperatorError("the crowd does not get its streams")
        victim = self._busiest()
        if victim is None:
            raise OperatorError("no gateway is up to be killed")
        wall_at, killed_at = time.time(), time.monotonic()
        report.killed, report.phase = victim.name, f"{victim.name} was killed"
        if not self._kill(victim):
            raise OperatorError(f"{victim.name} has ended by itself")
        deadline = killed_at + _LIVE_SECONDS
        while True:
            back = await crowd.standing(killed_at)
            report.live, report.returned = back.live, back.returned
            await self._count(report, crowd, int(wall_at))
            if back.returned > 0 and back.live == crowd.size:
                break
            if time.monotonic() > deadline:
                raise OperatorError(f"{crowd.size - back.live} clients were not back within {_LIVE_SECONDS:g} s")
            await asyncio.sleep(_BETWEEN_LOOKS_SECONDS)
        report.seconds = round(back.last_live_at - killed_at, 2)

    async def _count(self, report: StormReport, crowd: Crowd, since: int) -> None:
        attempts = (await crowd.report()).attempts_by_second
        admitted = await self._admitted()
        last = max([second for second in (*attempts, *admitted) if second >= since], default=since)
        seconds = range(since, last + 1)
        report.attempts_by_second = [attempts.get(second, 0) for second in seconds]
        report.admitted_by_second = [admitted[second] for second in seconds]

    async def _admitted(self) -> "Counter[int]":
        """By all gateways that answer, of every kind of connect but plain reads. Their seconds begin where they like:
        each counts for the Unix second that it is nearest to."""
        timeout = aiohttp.ClientTimeout(total=_ASK_SECONDS)
        found: Counter[int] = Counter()
        async with aiohttp.ClientSession(timeout=timeout) as http:
            for url in self._gateways.admin_urls:
                with suppress(aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError):
                    async with http.get(f"{url}/admin/admission") as response:
                        for row in (await response.json())["by_second"]:
                            found[round(row["at"])] += row["new"] + row["resume"]
        return found

    async def _judge(self, report: StormReport, crowd: Crowd, failures: "Counter[str]") -> None:
        expected, told = self._runs * crowd.size, await crowd.report()
        deadline = time.monotonic() + _END_SECONDS
        while told.ended_runs < expected and time.monotonic() < deadline:
            await asyncio.sleep(_BETWEEN_LOOKS_SECONDS)
            told = await crowd.report()
        report.judge(told, expected, failures)
        self._note(report.words)


__all__ = ["CLIENTS", "StormReport", "Storms"]
