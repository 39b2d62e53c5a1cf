"""A gateway's process ends without a word: its pod is deleted by force, or the kernel kills it for want of memory."""

import asyncio
import time
from typing import Any, Final

from loadtest.e2e.faults_scene import Fault, Scene, is_whole, whole
from loadtest.e2e.site import Pod
from loadtest.e2e.tool import CommandFailed

RESTART_SECONDS: Final = 90.0
EATERS: Final = 6
EATER_BYTES: Final = 64 * 1024 * 1024
"""Each is smaller than the gateway (120 MB and more), which so is the one that the kernel takes; together with it they
are above the limit."""
MEMORY_LIMIT: Final = "384Mi"
_EAT: Final = f"""
import time
held = bytearray({EATER_BYTES})
for page in range(0, len(held), 4096):
    held[page] = 1
time.sleep(30)
"""
AWAY_SECONDS: Final = 15.0
"""Sockets end at once; two or three tries, as the Service still names the dead gateway for a moment."""


async def _force_delete(scene: Scene) -> None:
    victim = (await scene.site.pods())[0]
    readers = await scene.connections(victim)
    began = time.monotonic()
    await scene.site.tool.kubectl(
        "delete", "pod", victim.name, "-n", scene.site.namespace, "--force", "--grace-period=0", "--wait=false"
    )
    await scene.site.until(
        lambda pods: is_whole(pods) and all(pod.name != victim.name for pod in pods), RESTART_SECONDS
    )
    scene.seen.append(f"{readers} readers were on it; its successor was ready after {time.monotonic() - began:.0f} s")


async def _oom_kill(scene: Scene) -> None:
    site = scene.site
    victim = (await site.pods())[0]
    before, readers = await scene.gateway_id(victim), await scene.connections(victim)
    began = time.monotonic()
    eating = asyncio.gather(*(_eat(scene, victim) for _ in range(EATERS)))
    try:
        await site.until(lambda pods: _restarts(pods, victim) > victim.restarts, RESTART_SECONDS)
    finally:
        await eating
    pod = next(pod for pod in await whole(site) if pod.name == victim.name)
    after = await scene.gateway_id(pod)
    scene.seen.append(
        f"{readers} readers were on it; the same pod served again after {time.monotonic() - began:.0f} s, "
        f"as {_life(after)} after {_life(before)}"
    )
    told = await site.tool.kubectl_json("get", "pod", victim.name, "-n", site.namespace)
    reason = last_end(told)
    scene.expect(reason == "OOMKilled", f"the container ended by {reason or 'nothing'}, not OOMKilled")
    scene.expect(before != after, "the new process has the old one's gateway id")
    scene.expect(pod.address == victim.address, "it is another pod")


async def _eat(scene: Scene, pod: Pod) -> None:
    """A process in the gateway's container; it ends with it."""
    words = ("exec", pod.name, "-n", scene.site.namespace, "-c", "gateway", "--", "python3", "-c", _EAT)
    try:
        await scene.site.tool.kubectl(*words, seconds=60)
    except CommandFailed:
        return  # killed, which is what it is for


def _restarts(pods: list[Pod], victim: Pod) -> int:
    return next((pod.restarts for pod in pods if pod.name == victim.name), -1)


def _life(gateway: str) -> str:
    """What tells two processes of one pod apart."""
    return gateway.rpartition("-")[2]


def last_end(pod: dict[str, Any]) -> str:
    """Why the gateway's container ended before, in Kubernetes' words."""
    statuses = pod["status"].get("containerStatuses", ())
    return next(
        (one["lastState"].get("terminated", {}).get("reason", "") for one in statuses if one["name"] == "gateway"), ""
    )


FORCE_DELETE: Final = Fault(
    "gateway pod deleted by force",
    "its readers' sockets break (1006), all are back on other gateways, nothing is lost",
    _force_delete,
    breaks_sockets=True,
    away_seconds=AWAY_SECONDS,
)
OOM_KILL: Final = Fault(
    "gateway killed for want of memory",
    "its readers' sockets break (1006), the pod serves again as another gateway, nothing is lost",
    _oom_kill,
    breaks_sockets=True,
    away_seconds=AWAY_SECONDS,
)

__all__ = ["FORCE_DELETE", "MEMORY_LIMIT", "OOM_KILL", "last_end"]
