"""Step 4: what breaks in a cluster, one after the other under live streams. What was written arrives all the same."""

from typing import Any, Final

from loadtest.e2e.faults_api import API_AWAY
from loadtest.e2e.faults_drain import DRAIN
from loadtest.e2e.faults_pods import FORCE_DELETE, MEMORY_LIMIT, OOM_KILL
from loadtest.e2e.faults_power import POWER_CUT
from loadtest.e2e.faults_redis import REDIS_DELETED, REDIS_FORCED
from loadtest.e2e.faults_scene import PODS, Fault, under_load
from loadtest.e2e.place import Place, tried
from loadtest.e2e.report import Row

FAULTS: Final[tuple[Fault, ...]] = (
    FORCE_DELETE,
    OOM_KILL,
    DRAIN,
    REDIS_DELETED,
    REDIS_FORCED,
    API_AWAY,
    POWER_CUT,
)
VALUES: Final[dict[str, Any]] = {
    "replicas": PODS,
    # Close above what a gateway uses: it is to be killed for it.
    "resources": {"limits": {"memory": MEMORY_LIMIT}},
    "drain": {"settleSeconds": 3, "windowSeconds": 10, "marginSeconds": 2},
}
NAME: Final = "faults"


async def run(place: Place, faults: tuple[Fault, ...] = FAULTS) -> list[Row]:
    async with place.site(NAME) as site:
        # A name of its own, which its pods carry: drains go by it, and other releases may be on the cluster.
        site.release, site.fullname = NAME, f"{NAME}-relayrouter"
        await site.install(VALUES)
        return [await tried(fault.step, under_load(site, place.streams, fault)) for fault in faults]


__all__ = ["FAULTS", "run"]
