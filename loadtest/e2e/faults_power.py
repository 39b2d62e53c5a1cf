"""A node loses its power and boots again.

Its sockets say nothing: clients find out by themselves, long before Kubernetes does.
"""

import asyncio
import time
from typing import Final

from loadtest.e2e.faults_scene import LOOK_SECONDS, Fault, Scene, is_whole, redis_node
from loadtest.e2e.site import Pod
from loadtest.e2e.tool import CommandFailed

TOOLS_NODE: Final = "node1"
"""With the API server and cluster DNS, and where the load runs."""
BACK_SECONDS: Final = 60.0
NOT_READY_SECONDS: Final = 120.0
BOOT_SECONDS: Final = 240.0


async def _power_cut(scene: Scene) -> None:
    site, taken = scene.site, {TOOLS_NODE, await redis_node(scene.site)}
    before = await site.pods()
    node = next((pod.node for pod in before if pod.node not in taken), None)
    if node is None:
        raise CommandFailed(f"no gateway is on a node of its own: {before}")
    victims = {pod.name: pod for pod in before if pod.node == node}
    readers = sum([await scene.connections(pod) for pod in victims.values()])
    number = int(node.removeprefix("node"))
    began = time.monotonic()
    try:
        await site.tool.kill_node(number)
        await _found_out(scene, readers)
        seconds = time.monotonic() - began
        scene.seen.append(f"{len(victims)} pods with {readers} readers; all were live elsewhere {seconds:.0f} s later")
        await site.until(lambda pods: not any(pod.is_ready for pod in pods if pod.node == node), NOT_READY_SECONDS)
        scene.seen.append(f"Kubernetes knew after {time.monotonic() - began:.0f} s")
    finally:
        boot = time.monotonic()
        await site.tool.start_node(number)
    after = await site.until(lambda pods: is_whole(pods) and _are_reborn(pods, victims), BOOT_SECONDS)
    scene.seen.append(f"pods were ready {time.monotonic() - boot:.0f} s after power was back")
    scene.expect({pod.name for pod in after} == {pod.name for pod in before}, "other pods than before")


async def _found_out(scene: Scene, readers: int) -> None:
    """Until so many sockets were given up, and everybody has one again. Raises CommandFailed."""
    give_up = time.monotonic() + BACK_SECONDS
    while await scene.closed() < readers or await scene.load.live() < scene.load.streams:
        if time.monotonic() > give_up:
            closed, live = await scene.closed(), await scene.load.live()
            raise CommandFailed(
                f"{BACK_SECONDS:g} s after the power cut {closed} of {readers} dead sockets are known, {live} live"
            )
        await asyncio.sleep(LOOK_SECONDS)


def _are_reborn(pods: list[Pod], victims: dict[str, Pod]) -> bool:
    """The containers that had no power are others now."""
    return all(pod.restarts > victims[pod.name].restarts for pod in pods if pod.name in victims)


POWER_CUT: Final = Fault(
    "a node's power cut, and its boot",
    "readers find their dead sockets by the heartbeat and are live elsewhere before Kubernetes knows, nothing is lost",
    _power_cut,
    breaks_sockets=True,
    away_seconds=BACK_SECONDS,
)

__all__ = ["POWER_CUT"]
