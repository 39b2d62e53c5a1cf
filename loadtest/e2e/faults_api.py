"""The API server is dead for twenty seconds.

Gateways need it for nothing that a client could notice, and say that it is away.
"""

import asyncio
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from loadtest.e2e.faults_scene import LOOK_SECONDS, Fault, Scene
from loadtest.e2e.site import Pod
from loadtest.e2e.tool import CannotRun, CommandFailed, Tool

AWAY_SECONDS: Final = 20.0
KILL_SECONDS: Final = 0.2
BACK_SECONDS: Final = 120.0
"""A gateway waits up to a minute between two tries."""
METRIC: Final = re.compile(r"^relayrouter_kubernetes_away (\S+)$", re.MULTILINE)
_HOLDER: Final = re.compile(r"^node1 .*pid (\d+)", re.MULTILINE)


async def _api_away(scene: Scene) -> None:
    site = scene.site
    pods = await site.pods()
    holder = await _holder(site.tool)
    scene.expect(not any(await _away(site.tool, pods)), "a gateway missed the API server before it was gone")
    began = time.monotonic()
    noticed: set[str] = set()
    killing = asyncio.create_task(_kill(holder))
    try:
        while not killing.done():
            told = await _away(site.tool, pods)
            noticed |= {pod.name for pod, is_away in zip(pods, told, strict=True) if is_away}
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
    await _answers(site.tool)
    seconds = time.monotonic() - began
    scene.seen.append(f"it was killed {killing.result()} times and away for {seconds:.0f} s")
    back_at = time.monotonic()
    while any(await _away(site.tool, pods)):
        if time.monotonic() > back_at + BACK_SECONDS:
            raise CommandFailed(f"relayrouter_kubernetes_away is still 1 after {BACK_SECONDS:g} s")
        await asyncio.sleep(LOOK_SECONDS)
    scene.seen.append(f"relayrouter_kubernetes_away was 1 on {len(noticed)} of {len(pods)} gateways")
    scene.seen.append(f"0 on all {time.monotonic() - back_at:.0f} s after it was back")
    scene.expect(len(noticed) == len(pods), "a gateway did not notice")
    for pod in pods:
        log = await site.tool.kubectl("logs", pod.name, "-n", site.namespace, "-c", "gateway", "--since=300s")
        missing = {event for event in ("kubernetes_away", "kubernetes_back") if f'"event": "{event}"' not in log}
        scene.expect(not missing, f"{pod.name} has not logged {', '.join(sorted(missing))}")
    after = await site.pods()
    scene.expect({(p.name, p.restarts) for p in pods} == {(p.name, p.restarts) for p in after}, "a pod was replaced")


async def _kill(holder: int) -> int:
    """Whenever the node has started it again, for as long as it is to be away: how often."""
    end_at = time.monotonic() + AWAY_SECONDS
    kills = 0
    while time.monotonic() < end_at:
        kills += kill_each(api_servers(holder))
        await asyncio.sleep(KILL_SECONDS)
    return kills


async def _away(tool: Tool, pods: list[Pod]) -> list[bool]:
    """The metric, as each gateway's admin port says it."""
    return list(await asyncio.gather(*(_is_away(tool, pod) for pod in pods)))


async def _is_away(tool: Tool, pod: Pod) -> bool:
    words = (sys.executable, "-m", "loadtest.e2e.ask", pod.admin_url, "/metrics")
    found = METRIC.search(await tool.exec(*words, seconds=30))
    if found is None:
        raise CommandFailed(f"{pod.name} has no metric relayrouter_kubernetes_away")
    return float(found[1]) > 0


async def _answers(tool: Tool) -> None:
    """Until the API server does. Raises CommandFailed."""
    give_up = time.monotonic() + BACK_SECONDS
    while True:
        try:
            await tool.kubectl("get", "--raw", "/readyz", seconds=10)
        except CommandFailed:
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(LOOK_SECONDS)
        else:
            return


# ---- its process ---------------------------------------------------------------------------------------------------


async def _holder(tool: Tool) -> int:
    """The process that all of node 1 descends from. Raises CannotRun where `status` names none."""
    found = _HOLDER.search(await tool.run("status", seconds=30))
    if found is None:
        raise CannotRun("the cluster's `status` does not tell node 1's process")
    return int(found[1])


def api_servers(holder: int, proc: Path = Path("/proc")) -> list[int]:
    """Living processes of that program among its descendants: no other cluster's, nobody else's."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):
            rest = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(rest[1])
            program = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            if Path(program).name == "kube-apiserver" and rest[0] != "Z":
                named.append(int(folder.name))
    return [pid for pid in named if _descends(pid, holder, parents)]


def _descends(pid: int, holder: int, parents: dict[int, int]) -> bool:
    while pid > 1:
        pid = parents.get(pid, 0)
        if pid == holder:
            return True
    return False


def kill_each(pids: list[int]) -> int:
    """How many were there to be killed."""
    killed = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


API_AWAY: Final = Fault(
    f"API server killed for {AWAY_SECONDS:g} s",
    "no socket ends; each gateway warns, relayrouter_kubernetes_away is 1 meanwhile and 0 afterwards",
    _api_away,
)

__all__ = ["API_AWAY", "api_servers", "kill_each"]
