"""The pod of the release's own Redis goes and comes back with its volume: all sockets stay, appends wait."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from loadtest.e2e.faults_scene import Fault, Scene
from loadtest.e2e.tool import CommandFailed

READY_SECONDS: Final = 120.0
GO_ON_SECONDS: Final = 10.0


def _deleted(*options: str) -> Callable[[Scene], Awaitable[None]]:
    async def cause(scene: Scene) -> None:
        site = scene.site
        pod = f"{site.fullname}-valkey-0"
        before = await _uid(scene, pod)
        began = time.monotonic()
        await site.tool.kubectl("delete", "pod", pod, "-n", site.namespace, *options, "--wait=false")
        while not await _is_new(scene, pod, before):
            if time.monotonic() > began + READY_SECONDS:
                raise CommandFailed(f"{pod} is not back after {READY_SECONDS:g} s")
        scene.seen.append(f"Redis was ready again after {time.monotonic() - began:.1f} s")
        position = await scene.position()
        await scene.load.flow(GO_ON_SECONDS)
        scene.expect(await scene.position() > position, "a stream did not go on")
        forks = int((await scene.load.report())["forks"])
        scene.seen.append(f"{forks} readers were told that another incarnation goes on where the first one ended")
        scene.expect(forks >= scene.load.streams, "not every reader was told of the new incarnation")

    return cause


async def _uid(scene: Scene, pod: str) -> str:
    told = await scene.site.tool.kubectl_json("get", "pod", pod, "-n", scene.site.namespace)
    return str(told["metadata"]["uid"])


async def _is_new(scene: Scene, pod: str, before: str) -> bool:
    try:
        told: dict[str, Any] = await scene.site.tool.kubectl_json("get", "pod", pod, "-n", scene.site.namespace)
    except CommandFailed:
        return False  # between the two there is none
    conditions = {one["type"]: one["status"] for one in told["status"].get("conditions", ())}
    return told["metadata"]["uid"] != before and conditions.get("Ready") == "True"


_EXPECTED: Final = (
    "no socket ends, appends wait for it, its append-only file has all that was acknowledged: nothing is lost"
)
REDIS_DELETED: Final = Fault("Redis pod deleted and back", _EXPECTED, _deleted())
REDIS_FORCED: Final = Fault("Redis pod deleted by force and back", _EXPECTED, _deleted("--force", "--grace-period=0"))

__all__ = ["REDIS_DELETED", "REDIS_FORCED"]
