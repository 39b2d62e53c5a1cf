"""Live streams on a site: producers and readers in the cluster's network, through the Service; admissions are watched.

Producers are the SDK's, readers bare sockets that judge every message. Each load has sessions of its own, so several
may run at once.
"""

import asyncio
import secrets
import time
from types import TracebackType
from typing import Any, Final, Protocol, Self

from loadtest.e2e.account import Account, Written, most_in_a_second, sum_up
from loadtest.e2e.inside import Inside
from loadtest.e2e.tool import CommandFailed, Tool

LIVE_SECONDS: Final = 120.0
END_SECONDS: Final = 240.0
"""A producer may still be waiting for a fault to pass."""
READ_ON_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.5
QUIET_SECONDS: Final = 3.0
"""After that a reader asks whether its socket lives, as the SDKs do in a run."""


class Target(Protocol):
    """What a load is put on."""

    tool: Tool
    namespace: str

    @property
    def selector(self) -> str: ...

    async def service_url(self) -> str: ...
    async def token(self, *scopes: str) -> str: ...


class Load:
    """`async with site.load(streams=60) as load`; `settled` before a fault, `end` for the account."""

    def __init__(
        self,
        target: Target,
        streams: int,
        *,
        idle: int = 0,
        url: str = "",
        seconds_between: float = 2.0,
        pace_per_second: float | None = None,
    ) -> None:
        """`idle`: readers of sessions without a run. `url`: instead of the Service's. `pace_per_second`: see `end`."""
        self.streams, self.idle = streams, idle
        self.prefix = f"e2e-{secrets.token_hex(3)}"
        self._target, self._url, self._seconds_between, self._pace = target, url, seconds_between, pace_per_second
        self._parts: list[Inside] = []
        self._began = 0.0

    async def __aenter__(self) -> Self:
        target = self._target
        url, token = self._url or await target.service_url(), await target.token()
        inside = target.tool.inside
        self.readers = Inside(
            "readers",
            inside(
                "loadtest.crowd", "--urls", url, "--prefix", self.prefix, "--sessions", str(self.streams),
                "--idle", str(self.idle), "--quiet-seconds", str(QUIET_SECONDS),
            ),
            {"CROWD_TOKEN": token},
        )  # fmt: skip
        self.writers = Inside(
            "writers",
            inside(
                "loadtest.e2e.writers", "--url", url, "--prefix", self.prefix, "--sessions", str(self.streams),
                "--seconds-between", str(self._seconds_between),
            ),
            {"E2E_TOKEN": token},
        )  # fmt: skip
        self.watcher = Inside(
            "watcher",
            inside("loadtest.e2e.watcher", "--namespace", target.namespace, "--selector", target.selector),
            {"E2E_TOKEN": await target.token("admin")},
        )
        self._parts = [self.watcher, self.readers, self.writers]
        try:
            for part in self._parts:
                await part.start()
        except BaseException:
            await self._stop()
            raise
        self._began = time.monotonic()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for part in self._parts:
            await part.end()

    # ---- while it runs -----------------------------------------------------------------------------------------

    async def live(self) -> int:
        """Readers with a socket that was welcomed."""
        return int((await self.readers.ask("live"))["live"])

    async def settled(self, seconds: float = LIVE_SECONDS) -> None:
        """Every reader is live and every stream has arrived. Raises CommandFailed after so many seconds."""
        give_up = time.monotonic() + seconds
        wanted = self.streams + self.idle
        while True:
            told = await self.readers.ask("live")
            problems = (await self.writers.ask("written"))["problems"]
            if told["live"] >= wanted and (told["positions"] > 0 or not self.streams):
                return
            if time.monotonic() > give_up:
                raise CommandFailed(
                    f"{told['live']} of {wanted} readers are live after {seconds:g} s, all have read up to "
                    f"{told['positions']}; {len(problems)} producers failed {list(problems.values())[:2]}"
                )
            await asyncio.sleep(LOOK_SECONDS)

    async def flow(self, seconds: float) -> None:
        """Lets the streams run on."""
        await asyncio.sleep(seconds)

    async def report(self) -> dict[str, Any]:
        """What the readers have met so far: counts, wrong, ended_runs, longest_away_seconds."""
        return await self.readers.ask("report")

    async def written(self) -> int:
        """Messages so far."""
        return int((await self.writers.ask("written"))["messages"])

    # ---- its end -----------------------------------------------------------------------------------------------

    async def end(self, seconds: float = END_SECONDS) -> Account:
        """Every run ends, everybody reads to the end, and all is summed up.

        Over budget are windows in which one gateway let more in than its bucket has, and with `pace_per_second` also
        seconds in which all of them together let more in than that.
        """
        told = await self.writers.ask("end", seconds=seconds)
        written = {session: Written(count, sha256, problem) for session, (count, sha256, problem) in told.items()}
        give_up = time.monotonic() + READ_ON_SECONDS
        report = await self.readers.ask("report")
        while report["ended_runs"] < self.streams and time.monotonic() < give_up:
            await asyncio.sleep(LOOK_SECONDS)
            report = await self.readers.ask("report")
        digests = await self.readers.ask("digests")
        account = sum_up(written, report, digests, self.streams)
        await asyncio.sleep(2 * LOOK_SECONDS)  # the last admissions are asked for
        admitted = await self.watcher.ask("admissions")
        by_second = {int(second): count for second, count in admitted["by_second"].items()}
        account.most_admitted = most_in_a_second(by_second)
        account.admitted_over_budget = int(admitted["over_budget"])
        if self._pace is not None:
            account.admitted_over_budget += sum(count > self._pace for count in by_second.values())
        if not admitted["gateways"]:
            account.problems.append("no gateway told whom it admitted")
            account.lost += 1
        account.seconds = time.monotonic() - self._began
        return account


__all__ = ["Load", "Target"]
