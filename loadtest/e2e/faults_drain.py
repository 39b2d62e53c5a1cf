"""Two nodes are drained one after the other, as for an upgrade of a cluster: the PodDisruptionBudget must hold."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from loadtest.e2e.faults_scene import LOOK_SECONDS, PODS, Fault, Scene, redis_node, whole
from loadtest.e2e.site import Pod
from loadtest.e2e.tool import CommandFailed

DRAIN_SECONDS: Final = 240.0
FEWEST_READY: Final = PODS - 1
"""The chart's budget: one may be down."""
AWAY_SECONDS: Final = 5.0
"""For one whose place in the drain came before it had another socket (1012)."""
REFUSED: Final = "violate the pod's disruption budget"


@dataclass(slots=True)
class Readiness:
    """Of the release's gateways, looked at twice a second."""

    fewest: int = PODS
    looks: int = 0

    def note(self, pods: list[Pod]) -> None:
        self.looks += 1
        self.fewest = min(self.fewest, sum(pod.is_ready for pod in pods))

    async def watch(self, scene: Scene) -> None:
        while True:
            with suppress(CommandFailed):
                self.note(await scene.site.pods())
            await asyncio.sleep(LOOK_SECONDS)


async def _drain_two(scene: Scene) -> None:
    site, stays = scene.site, await redis_node(scene.site)
    nodes = [name for name in await _nodes(scene) if name != stays][:2]
    readiness = Readiness()
    watching = asyncio.create_task(readiness.watch(scene))
    refusals = 0
    try:
        for node in nodes:
            leaving = sum(pod.node == node for pod in await site.pods())
            began = time.monotonic()
            try:
                refusals += await _drain(scene, node)
            finally:
                await site.tool.kubectl("uncordon", node)
            scene.seen.append(f"{node} ({leaving} gateways) was empty after {time.monotonic() - began:.0f} s")
            await whole(site)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    scene.seen.append(f"{refusals} evictions had to wait, never fewer than {readiness.fewest} of {PODS} were ready")
    scene.expect(refusals > 0, "no eviction had to wait: the budget was not put to the test")
    scene.expect(readiness.looks > 0, "nobody looked at readiness")
    scene.expect(readiness.fewest >= FEWEST_READY, f"{FEWEST_READY} must be ready at any time")


async def _drain(scene: Scene, node: str) -> int:
    """How often an eviction was refused. Of this release alone: others may be on the cluster."""
    # kubectl tells what it has to try again on standard error, also where all ends well.
    script = (
        'exec kubectl drain "$0" --ignore-daemonsets --delete-emptydir-data "--pod-selector=$1" "--timeout=$2" 2>&1'
    )
    told = await scene.site.tool.exec(
        "sh", "-c", script, node, scene.site.selector, f"{DRAIN_SECONDS:g}s", seconds=DRAIN_SECONDS + 20
    )
    return told.count(REFUSED)


async def _nodes(scene: Scene) -> list[str]:
    told = await scene.site.tool.kubectl_json("get", "nodes")
    return [item["metadata"]["name"] for item in told["items"]]


DRAIN: Final = Fault(
    "two nodes drained, one after the other",
    f"never fewer than {FEWEST_READY} ready, evictions wait for it, readers move without a break",
    _drain_two,
    away_seconds=AWAY_SECONDS,
)

__all__ = ["DRAIN", "Readiness"]
