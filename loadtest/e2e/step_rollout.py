"""Step 2: the previous release with live streams is upgraded to this one, and rolled back. Nobody may notice."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from loadtest.e2e.images import PRESENT
from loadtest.e2e.place import Place, tried
from loadtest.e2e.report import Row
from loadtest.e2e.site import Site

PODS: Final = 3
CALM_SECONDS: Final = 5.0
RETURNS_PER_SECOND: Final = 100.0
"""`drain.returns_per_second`: so many at most are asked to come back, and only one pod drains at a time."""
SHORT_DRAIN: Final = {"settleSeconds": 3, "windowSeconds": 10, "marginSeconds": 2}
ROLL_SECONDS: Final = 600.0


async def run(place: Place) -> list[Row]:
    previous = await place.images.previous()
    values: dict[str, Any] = {"replicas": PODS, **({"drain": SHORT_DRAIN} if place.is_small else {})}
    async with place.site("rollout") as site:
        await site.install({**values, "image": {"tag": previous.version}}, chart=previous.chart)
        name = f"helm upgrade, {previous.version} to this"
        upgraded = await tried(
            name, _rolled(place, site, name, PRESENT, lambda: site.upgrade(values, seconds=ROLL_SECONDS))
        )
        name = f"helm rollback to {previous.version}"
        back = await tried(name, _rolled(place, site, name, previous.image, lambda: site.rollback(1, ROLL_SECONDS)))
    return [upgraded, back]


async def _rolled(place: Place, site: Site, step: str, image: str, roll: Callable[[], Awaitable[float]]) -> Row:
    """Passed: calm, and all pods are others, of the image that was asked for."""
    before = {pod.name for pod in await site.pods()}
    async with site.load(place.streams, pace_per_second=RETURNS_PER_SECOND) as load:
        await load.settled()
        await load.flow(CALM_SECONDS)
        seconds = await roll()
        await load.settled()
        await load.flow(CALM_SECONDS)
        account = await load.end()
    pods = await site.pods()
    is_rolled = len(pods) == PODS and not before & {pod.name for pod in pods} and {pod.image for pod in pods} == {image}
    note = f"{PODS} pods replaced in {seconds:.0f} s" if is_rolled else f"pods are not as asked: {pods}"
    return account.row(step, note, is_passed=account.is_calm and is_rolled)


__all__ = ["run"]
