"""A node loses its power and boots again.

Its sockets say nothing: clients find out by themselves, long before Kubernetes does.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from loadtest.e2e.faults_scene import LOOK_SECONDS, Fault, Scene, is_whole, redis_node
from loadtest.e2e.site import Pod
from loadtest.e2e.tool import CommandFailed

TOOLS_NODE: Final = "node1"
"""With the API server and cluster DNS, and where the load runs."""
FOUND_OUT_SECONDS: Final = 12.0
"""3 s of silence in a run, 5 s without an answer, and time for a busy machine."""
BACK_SECONDS: Final = 180.0
"""The Service names the dead gateways until Kubernetes knows, for 50 s: new sockets may be sent there again. Then a try
may be under way (10 s) and a wait begin (30 s at most), by the rules of the SDKs. All readers have one address here, so
ports come again: one that was tried within 120 s meets what the node remembers of it (conntrack), the dead gateway."""
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
        known = await _until(lambda: _are_given_up(scene, readers), began)
        back = await _until(lambda: _are_live(scene), began)
        scene.seen.append(
            f"{len(victims)} pods with {readers} readers, who had given up their dead sockets {known:.0f} s later"
        )
        scene.seen.append(f"all were live elsewhere after {back:.0f} s")
        scene.expect(known <= FOUND_OUT_SECONDS, f"dead sockets must be found within {FOUND_OUT_SECONDS:g} s")
        missing = scene.load.streams - await scene.load.live()
        scene.expect(missing <= 0, f"{missing} readers were not live then")
        await site.until(lambda pods: not any(pod.is_ready for pod in pods if pod.node == node), NOT_READY_SECONDS)
        scene.seen.append(f"Kubernetes knew after {time.monotonic() - began:.0f} s")
    finally:
        boot = time.monotonic()
        await site.tool.start_node(number)
    after = await site.until(lambda pods: is_whole(pods) and _are_reborn(pods, victims), BOOT_SECONDS)
    scene.seen.append(f"pods were ready {time.monotonic() - boot:.0f} s after power was back")
    scene.expect({pod.name for pod in after} == {pod.name for pod in before}, "other pods than before")


async def _until(holds: Callable[[], Awaitable[bool]], began: float) -> float:
    """Seconds since `began`, when it holds or is given up."""
    while not await holds():
        if time.monotonic() > began + BACK_SECONDS:
            break
        await asyncio.sleep(LOOK_SECONDS)
    return time.monotonic() - began


async def _are_given_up(scene: Scene, sockets: int) -> bool:
    return await scene.closed() >= sockets


async def _are_live(scene: Scene) -> bool:
    return await scene.load.live() >= scene.load.streams


def _are_reborn(pods: list[Pod], victims: dict[str, Pod]) -> bool:
    """The containers that had no power are others now."""
    return all(pod.restarts > victims[pod.name].restarts for pod in pods if pod.name in victims)


POWER_CUT: Final = Fault(
    "a node's power cut, and its boot",
    "readers find their dead sockets by the heartbeat, long before Kubernetes does, and those whom the Service sends "
    "to the dead node again try again; nothing is lost",
    _power_cut,
    breaks_sockets=True,
    away_seconds=BACK_SECONDS,
)

__all__ = ["POWER_CUT"]
