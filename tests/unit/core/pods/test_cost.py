"""The cost is written when it is worth it, never once the end has begun, and a refusal hurts nobody."""

import random
from dataclasses import dataclass, field

from structlog.testing import capture_logs

from gateway.core.pods.cost import PodCost
from gateway.domain.measures import Measures
from gateway.domain.pods.deletion_cost import LEAVING_COST, Load, cost_of
from tests.unit.core.pods.fake_pods import FORBIDDEN, FakePods


@dataclass
class Scene:
    pods: FakePods = field(default_factory=FakePods)
    now: list[float] = field(default_factory=lambda: [0.0])
    load: Load | None = field(default_factory=lambda: Load(0, 0))
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        self.cost = PodCost(
            self.pods.as_pods(),
            self.measures,
            lambda: self.load,
            every_seconds=60,
            clock=lambda: self.now[0],
            rng=random.Random(7),
        )

    async def look(self, load: Load | None, after_seconds: float = 0.0) -> None:
        self.now[0] += after_seconds
        self.load = load
        await self.cost.step()


async def test_a_gateway_that_fills_says_so_and_no_oftener_than_it_may() -> None:
    scene = Scene()
    await scene.look(Load(0, 0))
    await scene.look(Load(2, 30), after_seconds=59)
    await scene.look(Load(3, 40), after_seconds=1)
    await scene.look(Load(3, 41), after_seconds=600)

    assert [0, cost_of(Load(3, 40))] == scene.pods.costs
    assert 2 == scene.measures.pod_deletion_costs["written"]


async def test_a_drained_gateway_is_the_first_to_go() -> None:
    scene = Scene()
    await scene.look(Load(3, 40))
    await scene.look(Load(3, 40, is_leaving=True), after_seconds=60)

    assert LEAVING_COST == scene.pods.costs[-1]


async def test_nothing_is_written_once_the_process_ends() -> None:
    scene = Scene()
    await scene.look(None)

    assert [] == scene.pods.asked


async def test_a_refusal_is_warned_of_once_and_asked_less_and_less_often() -> None:
    scene = Scene()
    scene.pods.away["patch"] = FORBIDDEN
    with capture_logs() as logs:
        for _ in range(3600):
            await scene.look(Load(1, 1), after_seconds=1)

    assert ["kubernetes_away"] == [line["event"] for line in logs]
    assert scene.cost.is_away
    assert 4 <= len(scene.pods.asked) <= 12


async def test_a_right_that_comes_later_is_used() -> None:
    scene = Scene()
    scene.pods.away["patch"] = FORBIDDEN
    await scene.look(Load(1, 1))
    scene.pods.away.clear()
    await scene.look(Load(1, 1), after_seconds=600)

    assert [cost_of(Load(1, 1))] == scene.pods.costs
    assert not scene.cost.is_away
