"""`python -m loadtest.bench.cluster_storm`: readers of running streams, a gateway killed, then all rolled.

The text of every run is judged by every reader (order, bytes, digest); delivery times are those of readers that kept
their socket while others moved. The keys in build/bench.json begin with `storm_`.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import Final

from gateway.settings import Settings
from loadtest.bench.cluster import Admissions, cluster, start_gently
from loadtest.bench.crowds import Crowds, Streams, crowds, percentile, streams
from loadtest.processes import Gateway

GATEWAYS: Final = 3
PROCESSES: Final = 2
OPEN_SECONDS: Final = 180.0
CALM_SECONDS: Final = 10.0
KILLED_FOR_SECONDS: Final = 3.0
LIVE_BOUND_SECONDS: Final = 35.0
"""The longest wait of an SDK (30 s), and its connect; a drained client's slot is earlier."""
EXIT_SECONDS: Final = 40.0
READ_ON_SECONDS: Final = 60.0


@dataclass(slots=True)
class Phase:
    name: str
    seconds: float
    """From the fault until every client was live."""
    stayed: int
    moved: int
    times_ms: list[float] = field(repr=False)
    """From append to client, of those that kept their socket; ascending."""

    @property
    def p99_ms(self) -> float:
        return percentile(self.times_ms, 0.99)


@dataclass(slots=True)
class Storm:
    clients: int
    sessions: int
    phases: list[Phase] = field(default_factory=list)
    lost: int = 0
    """Messages, bytes of text or runs that any client lacks, or has not as they were written."""
    wrong: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    over_budget: int = 0
    most_admitted: int = 0
    attempts_by_second: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        calm, *stormy = self.phases
        return {
            "storm_lost": self.lost,
            "storm_admitted_over_budget": self.over_budget,
            "storm_all_live_seconds": max(phase.seconds for phase in stormy),
            "storm_p99_ratio": percentile(list(merge(*(phase.times_ms for phase in stormy))), 0.99) / calm.p99_ms,
        }


async def storm(folder: Path, sessions: int, clients_each: int, seconds_between: float) -> Storm:
    result = Storm(sessions * clients_each, sessions)
    async with cluster(folder, GATEWAYS) as gateways:
        urls = [gateway.url for gateway in gateways]
        async with crowds(urls, PROCESSES, sessions=sessions, clients=clients_each) as crowd:
            await crowd.until_live(result.clients, OPEN_SECONDS)
            async with streams(urls, sessions, seconds_between) as writers:
                await asyncio.sleep(2 * seconds_between + 2)
                await _play(result, gateways, crowd, writers)
    return result


async def _play(result: Storm, gateways: list[Gateway], crowd: Crowds, writers: Streams) -> None:
    admissions = Admissions(gateways)
    watching = asyncio.create_task(admissions.watch())
    await crowd.end_phase()
    await asyncio.sleep(CALM_SECONDS)
    await _note(result, crowd, "calm", 0.0)
    began_at = int(time.time())

    await _kill(result, crowd, gateways[0])
    for number, gateway in enumerate([*gateways[1:], gateways[0]]):  # the killed one has nobody yet
        await _roll(result, crowd, gateway, f"roll {number + 1}")

    await writers.end()
    await _read_on(crowd, result.clients)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await admissions.look()
    counts, wrong, attempts, ended = await crowd.report()
    result.counts, result.wrong = dict(counts), dict(wrong)
    result.failures += writers.failures
    result.lost = sum(wrong.values()) + len(result.failures) + (result.clients - ended)
    result.attempts_by_second = [attempts[second] for second in range(began_at, max(attempts) + 1)]
    budget = Settings().admission
    result.over_budget = admissions.over_budget(budget.resumes_per_second, budget.resumes_burst)
    result.most_admitted = admissions.most


async def _kill(result: Storm, crowd: Crowds, gateway: Gateway) -> None:
    """Kill -9, and its successor a moment later."""
    began = time.monotonic()
    await gateway.kill()
    await asyncio.sleep(KILLED_FOR_SECONDS)
    await start_gently(gateway)
    await _settled(result, crowd, "kill", began)


async def _roll(result: Storm, crowd: Crowds, gateway: Gateway, name: str) -> None:
    """SIGTERM, its drain, its successor."""
    began = time.monotonic()
    gateway.terminate()
    code = await gateway.wait(EXIT_SECONDS)
    if code:
        result.failures.append(f"{name}: exit code {code}")
    await start_gently(gateway)
    await _settled(result, crowd, name, began)


async def _settled(result: Storm, crowd: Crowds, name: str, began: float) -> None:
    """`seconds` until the last one was back; of a drain from SIGTERM on."""
    try:
        last_at = await crowd.until_live(result.clients, LIVE_BOUND_SECONDS + EXIT_SECONDS)
    except TimeoutError:
        result.failures.append(f"{name}: {result.clients - await crowd.live()} clients did not come back")
        last_at = time.monotonic()
    await asyncio.sleep(1.0)
    await _note(result, crowd, name, last_at - began)


async def _note(result: Storm, crowd: Crowds, name: str, seconds: float) -> None:
    times, stayed, moved = await crowd.end_phase()
    result.phases.append(Phase(name, seconds, stayed, moved, times))


async def _read_on(crowd: Crowds, clients: int) -> None:
    """Until everybody has read the end of its run."""
    give_up = time.monotonic() + READ_ON_SECONDS
    while time.monotonic() < give_up and (await crowd.report())[3] < clients:  # noqa: ASYNC110  another process
        await asyncio.sleep(0.5)


def show(result: Storm) -> None:
    print(f"clients               {result.clients}, readers of {result.sessions} running streams, {GATEWAYS} gateways")
    for phase in result.phases:
        print(
            f"{phase.name:<22}{phase.moved:>6} moved, all live after {phase.seconds:5.1f} s; "
            f"the {phase.stayed} others: {percentile(phase.times_ms, 0.5):.1f} ms (half), {phase.p99_ms:.1f} ms (99 %)"
        )
    print(f"attempts a second     {' '.join(map(str, result.attempts_by_second))}")
    print(f"most admitted         {result.most_admitted} by one gateway in a second; over budget: {result.over_budget}")
    print(f"what clients met      {result.counts}")
    print(f"lost or wrong         {result.lost} {result.wrong or ''}")
    print(f"P99 of the storm      {result.figures()['storm_p99_ratio']:.1f} times that before")
    for failure in result.failures[:10]:
        print(f"FAILED: {failure}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m loadtest.bench.cluster_storm", description=__doc__)
    parser.add_argument("--sessions", type=int, default=300)
    parser.add_argument("--clients", type=int, default=20, help="readers of each session")
    parser.add_argument("--seconds-between", type=float, default=2.0, help="two writes of a stream")
    parser.add_argument("--json", action="store_true", help="the figures as one line of JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(
            storm(Path(folder), arguments.sessions, arguments.clients, arguments.seconds_between)
        )  # fmt: skip
    if arguments.json:
        told = {"figures": result.figures(), "wrong": result.wrong, "failures": result.failures}
        print(json.dumps(told))
    else:
        show(result)
    return 1 if result.lost or result.over_budget else 0


if __name__ == "__main__":
    sys.exit(main())
