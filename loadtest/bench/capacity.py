"""`python -m loadtest.bench.capacity`: idle and streaming connections on four gateways of one machine."""

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from loadtest.bench.cluster import cluster
from loadtest.bench.cpu import cpu_seconds, resident_kib
from loadtest.bench.crowds import crowds, percentile, streams

GATEWAYS: Final = 4
PROCESSES: Final = 2
OPEN_SECONDS: Final = 240.0
SPARE_FILES: Final = 1_000


@dataclass(slots=True)
class Capacity:
    idle: int
    streaming: int
    messages_per_second: float
    """Deliveries, over all gateways."""
    p50_ms: float
    p99_ms: float
    gateway_cpu_share: float
    """Of one core, the mean of a gateway."""
    gateway_mib: float
    kib_per_connection: float
    wrong: int
    limited_by: str
    """What would have to be raised for more; empty when all that was asked for fitted."""


def fitting(idle: int, streaming: int) -> tuple[int, str]:
    """Idle ones that the limit of open files allows, and what limits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    each_process = (idle + streaming) // min(GATEWAYS, PROCESSES) + SPARE_FILES
    if each_process <= hard:
        return idle, ""
    return max(0, (hard - SPARE_FILES) * PROCESSES - streaming), f"open files of a process: {hard}"


async def capacity(folder: Path, idle: int, sessions: int, clients_each: int, seconds: float) -> Capacity:
    streaming = sessions * clients_each
    idle, limited_by = fitting(idle, streaming)
    limits = {
        "RR_ADMISSION__NEW_PER_SECOND": "0"
    }  # they all come at once, and it is not their arrival that is measured
    async with cluster(folder, GATEWAYS, **limits) as gateways:
        before_kib = [resident_kib(gateway.pid) for gateway in gateways]
        urls = [gateway.url for gateway in gateways]
        async with crowds(urls, PROCESSES, sessions=sessions, clients=clients_each, idle=idle) as crowd:
            await crowd.until_live(idle + streaming, OPEN_SECONDS)
            async with streams(urls, sessions, 1.0) as writers:
                await asyncio.sleep(5.0)
                await crowd.end_phase()
                cpu_before, began = [cpu_seconds(gateway.pid) for gateway in gateways], time.monotonic()
                await asyncio.sleep(seconds)
                took = time.monotonic() - began
                cpu = [cpu_seconds(gateway.pid) - spent for gateway, spent in zip(gateways, cpu_before, strict=True)]
                after_kib = [resident_kib(gateway.pid) for gateway in gateways]
                times, _, moved = await crowd.end_phase()
                await writers.end()
            await asyncio.sleep(2.0)
            _, wrong, _, ended = await crowd.report()
    grown = sum(after_kib) - sum(before_kib)
    return Capacity(
        idle,
        streaming,
        len(times) / took,
        percentile(times, 0.5),
        percentile(times, 0.99),
        sum(cpu) / took / GATEWAYS,
        sum(after_kib) / GATEWAYS / 1024,
        grown / (idle + streaming),
        sum(wrong.values()) + moved + len(writers.failures) + (streaming - ended),
        limited_by,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m loadtest.bench.capacity", description=__doc__)
    parser.add_argument("--idle", type=int, default=20_000)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--clients", type=int, default=20, help="readers of each stream")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(
            capacity(Path(folder), arguments.idle, arguments.sessions, arguments.clients, arguments.seconds)
        )
    if arguments.json:
        print(json.dumps(asdict(found)))
    else:
        for name, value in asdict(found).items():
            print(f"{name:<22}{value:.1f}" if isinstance(value, float) else f"{name:<22}{value}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
