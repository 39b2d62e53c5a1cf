"""Step 3: the autoscaler takes two pods to four and back, by clients and by CPU, under live streams.

A scale-in must take the pod with the fewest live runs, a scale-out must end with clients spread evenly, and nobody may
notice either.
"""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from loadtest.e2e.place import Place, tried
from loadtest.e2e.pods_seen import Look, is_even, removals
from loadtest.e2e.report import Row
from loadtest.e2e.site import Site
from loadtest.e2e.sums import together
from loadtest.e2e.watching import Watching

FEWEST: Final = 2
MOST: Final = 4
SCALE_OUT_SECONDS: Final = 180.0
EVEN_SECONDS: Final = 240.0
SCALE_IN_SECONDS: Final = 480.0
CALM_SECONDS: Final = 30
SETTINGS: Final = {
    "cluster": {"deletion_cost_seconds": 2},
    "rebalance": {"patience_seconds": 5, "rest_seconds": 20},
}
TOLD: Final = (
    f"set for shortness: scaleDown stabilizationWindowSeconds and periodSeconds {CALM_SECONDS} (300, 60), "
    "cluster.deletion_cost_seconds 2 (60), rebalance.patience_seconds 5 (30) and rest_seconds 20 (600)"
)
"""What a user would set, and the defaults."""
BY_CLIENTS: Final = f"autoscaler by clients, {FEWEST} to {MOST} to {FEWEST} pods"
BY_CPU: Final = f"autoscaler by CPU, {FEWEST} to {MOST} to {FEWEST} pods"
CPU_PERCENT: Final = 60
"""Of the 100m that are requested here: 300 messages a second of a gateway; 30 to 40 quiet streams take 30 %."""


@dataclass(frozen=True, slots=True)
class Wave:
    """What comes, makes the autoscaler act, and goes."""

    streams: int = 0
    idle: int = 0
    seconds_between: float = 2.0


BUSY: Final = Wave(streams=40, seconds_between=0.025)
"""1,600 messages a second: a quarter of a core, measured."""


async def run(place: Place) -> list[Row]:
    streams = max(20, place.streams // 5)
    crowd = Wave(idle=4 * streams)
    async with place.site("scaling") as site:
        await site.install(values(targetConnections=round((streams + crowd.idle) / (MOST - 0.4))))
        by_clients = await tried(BY_CLIENTS, _scaled(site, streams, BY_CLIENTS, crowd, is_spread=True))
        await site.upgrade(values(targetCPUPercent=CPU_PERCENT))
        by_cpu = await tried(BY_CPU, _scaled(site, streams, BY_CPU, BUSY, is_spread=False))
    return [by_clients, by_cpu]


def values(**targets: Any) -> dict[str, Any]:
    """Targets that are not named are not used."""
    return {
        "autoscaling": {
            "enabled": True,
            "minReplicas": FEWEST,
            "maxReplicas": MOST,
            "targetCPUPercent": None,
            "targetConnections": None,
            **targets,
            "scaleDown": {"stabilizationWindowSeconds": CALM_SECONDS, "periodSeconds": CALM_SECONDS},
        },
        "config": SETTINGS,
    }


async def _scaled(site: Site, streams: int, step: str, wave: Wave, *, is_spread: bool) -> Row:
    """Streams that begin at two pods see the scale-out, others that begin at four see the scale-in."""
    began = time.monotonic()
    notes = []
    async with AsyncExitStack() as stack:
        seen = await stack.enter_async_context(Watching(site))
        await seen.until("two pods", _has(FEWEST), SCALE_OUT_SECONDS)
        async with site.load(streams) as early:
            await early.settled()
            came_at = time.monotonic()
            async with site.load(wave.streams, idle=wave.idle, seconds_between=wave.seconds_between) as coming:
                grown = await seen.until("four pods", _has(MOST), SCALE_OUT_SECONDS)
                notes.append(f"four pods served {time.monotonic() - came_at:.0f} s after the load had come")
                if is_spread:
                    notes.append(await _evened(seen, grown))
                later = await stack.enter_async_context(site.load(streams))
                await later.settled()
                accounts = [await early.end(), await coming.end()]
        went_at = time.monotonic()
        await seen.until("two pods again", _has(FEWEST), SCALE_IN_SECONDS)
        notes.append(f"two again {time.monotonic() - went_at:.0f} s after it had gone")
        accounts.append(await later.end())
    taken = removals(seen.looks)
    notes.append(f"scale-in took the pods with {', then '.join(one.told() for one in taken)} live runs")
    account = together(accounts)
    account.seconds = time.monotonic() - began
    is_fewest = len(taken) == MOST - FEWEST and all(one.is_fewest for one in taken)
    return account.row(step, "; ".join([*notes, TOLD]), is_passed=account.is_calm and is_fewest)


async def _evened(seen: Watching, grown: Look) -> str:
    """Raises CommandFailed when clients do not spread over the new pods in time."""
    began = time.monotonic()
    even = await seen.until(
        "clients are spread", lambda look: _has(MOST)(look) and is_even(_clients(look)), EVEN_SECONDS
    )
    seconds = time.monotonic() - began
    return f"clients by pod {_shown(grown)} at first, {_shown(even)} after {seconds:.0f} s more"


def _has(count: int) -> Callable[[Look], bool]:
    """So many serve, and nobody else is there any more."""
    return lambda look: len(look.serving) == len(look.pods) == count


def _clients(look: Look) -> list[int]:
    return [pod.connections for pod in look.serving]


def _shown(look: Look) -> str:
    return ", ".join(map(str, sorted(_clients(look))))


__all__ = ["run", "values"]
