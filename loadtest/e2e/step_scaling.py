"""Step 3: the autoscaler takes two pods to four and back, by clients and by CPU, under live streams.

A scale-in must take the pod with the fewest live runs, a scale-out must end with clients spread evenly, and nobody may
notice either.
"""

from typing import Any, Final

from loadtest.e2e.place import Place
from loadtest.e2e.report import Row

FEWEST: Final = 2
MOST: Final = 4
SCALE_OUT_SECONDS: Final = 180.0
EVEN_SECONDS: Final = 240.0
SCALE_IN_SECONDS: Final = 420.0
CALM_SECONDS: Final = 30
"""As autoscaling.scaleDown.stabilizationWindowSeconds, by default ten times that: the costs of deletion are exact within
five times `cluster.deletion_cost_seconds`."""
SETTINGS: Final = {
    "cluster": {"deletion_cost_seconds": 2},
    "rebalance": {"patience_seconds": 5, "rest_seconds": 20},
}
TOLD: Final = (
    f"set for shortness: scaleDown after {CALM_SECONDS} s of calm (300), deletion_cost_seconds 2 (60), "
    "rebalance.patience_seconds 5 (30) and rest_seconds 20 (600)"
)
"""Each as a user would set it, with its default."""
BUSY_SECONDS_BETWEEN: Final = 0.05


async def run(place: Place) -> list[Row]:
    await place.images.present()
    await place.images.redis()
    streams = max(20, place.streams // 5)
    crowd = 4 * streams
    async with place.site("scaling") as site:
        await site.install(values(targetConnections=round((crowd + streams) / (MOST - 0.4))))
        by_connections = await scaled(site, streams, "by connections", Wave(idle=crowd), is_spread=True)
        await site.upgrade(values(targetCPUPercent=60))
        by_cpu = await scaled(site, streams, "by CPU", Wave(streams=streams, seconds_between=BUSY_SECONDS_BETWEEN))
    return [by_connections, by_cpu]


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
