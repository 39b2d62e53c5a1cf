"""What a fault is given, and what its row says: live streams on a site of four gateways while something breaks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.e2e.account import POLITE_CLOSES, Account
from loadtest.e2e.load import Load
from loadtest.e2e.report import Row
from loadtest.e2e.site import Pod, Site
from loadtest.e2e.tool import CommandFailed

PODS: Final = 4
"""More than nodes: one of them has two, whose evictions must wait for each other."""
CALM_SECONDS: Final = 5.0
"""Before a fault and after it, for the streams to run on."""
WHOLE_SECONDS: Final = 180.0
BROKEN: Final = 1006
LOOK_SECONDS: Final = 0.5


@dataclass(slots=True)
class Scene:
    site: Site
    load: Load
    seen: list[str] = field(default_factory=list)
    """What happened, in words and figures, for the row's note."""
    failures: list[str] = field(default_factory=list)
    """What should have been otherwise."""

    def expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            self.failures.append(otherwise)

    async def closed(self, code: int = BROKEN) -> int:
        """Readers' sockets that ended so, up to now."""
        counts = (await self.load.report())["counts"]
        return int(counts.get(f"closed_{code}", 0))

    async def position(self) -> int:
        """Up to which every reader has read."""
        return int((await self.load.readers.ask("live"))["positions"])

    async def gateway_id(self, pod: Pod) -> str:
        return str((await self.status(pod))["gateway"])

    async def connections(self, pod: Pod) -> int:
        """Readers whose sockets end there."""
        return sum((await self.status(pod))["now"]["connections"].values())

    async def status(self, pod: Pod) -> dict[str, Any]:
        told: dict[str, Any] = await self.site.admin(pod, "/admin/status")
        return told


@dataclass(frozen=True, slots=True)
class Fault:
    step: str
    expected: str
    """What must be, in a reader's words."""
    cause: Callable[[Scene], Awaitable[None]]
    """Makes it, and returns when what it brings is over."""
    breaks_sockets: bool = False
    """It cannot be made without; otherwise no socket may end but by a drain."""
    away_seconds: float = 0.0
    """Longest that a reader may be without a socket, from the last byte on the old one to the new one's welcome."""


async def under_load(site: Site, streams: int, fault: Fault) -> Row:
    """Raises what the fault raises: then nothing can be said of the streams."""
    await whole(site)
    async with site.load(streams) as load:
        await load.settled()
        await load.flow(CALM_SECONDS)
        scene = Scene(site, load)
        await fault.cause(scene)
        await load.settled()
        await load.flow(CALM_SECONDS)
        account = await load.end()
    failures = [*scene.failures, *objections(account, fault)]
    failed = [f"NOT AS EXPECTED: {', '.join(failures)}"] if failures else []
    away = [f"a reader was without a socket for {account.longest_away_seconds:.1f} s at most"]
    note = "; ".join([*failed, *scene.seen, *(away if fault.breaks_sockets else []), f"expected: {fault.expected}"])
    return account.row(fault.step, note, is_passed=not failures)


def objections(account: Account, fault: Fault) -> list[str]:
    """What the readers saw and should not have. Empty: as it must be."""
    found = []
    if not account.is_whole:
        found.append("streams are not whole")
    if account.admitted_over_budget:
        found.append("more came back at once than may")
    strange = sorted(code for code in account.closes if code not in {*POLITE_CLOSES, BROKEN})
    if strange:
        found.append(f"sockets closed with {', '.join(map(str, strange))}")
    broken = account.closes.get(BROKEN, 0)
    if broken and not fault.breaks_sockets:
        found.append("sockets broke")
    if fault.breaks_sockets and not broken:
        found.append("no socket broke: nothing was shown")
    if account.longest_away_seconds > fault.away_seconds:
        found.append(
            f"a reader was away for {account.longest_away_seconds:.1f} s, {fault.away_seconds:g} s are allowed"
        )
    return found


async def whole(site: Site, seconds: float = WHOLE_SECONDS) -> list[Pod]:
    """Until all gateways are there and ready, and none is ending. Raises CommandFailed."""
    return await site.until(is_whole, seconds)


def is_whole(pods: list[Pod]) -> bool:
    return len(pods) == PODS and all(pod.is_ready and not pod.is_terminating for pod in pods)


async def redis_node(site: Site) -> str:
    """Where the release's own Redis is."""
    pods = await site.pods(f"app.kubernetes.io/instance={site.release},app.kubernetes.io/component=valkey")
    if not pods or not pods[0].node:
        raise CommandFailed("there is no pod of Redis")
    return pods[0].node


__all__ = [
    "BROKEN", "LOOK_SECONDS", "PODS", "Fault", "Scene", "is_whole", "objections", "redis_node", "under_load", "whole",
]  # fmt: skip
