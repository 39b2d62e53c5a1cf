"""Writes on the own pod what deleting it would cost, so that a scale-in takes the one with the fewest runs (K12)."""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from gateway.core.pods.outage import Outage
from gateway.domain.measures import Measures
from gateway.domain.pods.backoff import Backoff
from gateway.domain.pods.deletion_cost import CostPlan, Load
from gateway.ports import Clock
from gateway.ports.pods import Pods, PodsAway

LOOK_SECONDS: Final = 5.0
"""A look costs nothing; writes are at least `cluster.deletion_cost_seconds` apart."""
MOST_WAIT_SECONDS: Final = 600.0
"""A Role that lacks the right is seldom changed."""


class PodCost:
    """`run` for ever, or `step` by hand."""

    def __init__(
        self,
        pods: Pods,
        measures: Measures,
        load: Callable[[], Load | None],
        *,
        every_seconds: float,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """`load`: None once the process is about to end: then nobody chooses any more."""
        self._pods = pods
        self._measures = measures
        self._load = load
        self._clock = clock
        self._rng = rng
        self._plan = CostPlan(every_seconds)
        self._backoff = Backoff(every_seconds, max(every_seconds, MOST_WAIT_SECONDS))
        self._outage = Outage("pod deletion cost", measures.kubernetes_errors)

    @property
    def is_away(self) -> bool:
        return self._outage.is_on

    async def run(self) -> None:
        look_seconds = min(LOOK_SECONDS, self._plan.every_seconds)
        await asyncio.sleep(self._rng.random() * look_seconds)  # pods that start together do not write together
        while True:
            await self.step()
            await asyncio.sleep(look_seconds)

    async def step(self) -> None:
        """Write it, if that is due."""
        load = self._load()
        cost = None if load is None else self._plan.due(self._clock(), load)
        if load is None or cost is None:
            return
        try:
            await self._pods.set_deletion_cost(cost)
        except PodsAway as exc:
            self._outage.failed(exc)
            self._measures.pod_deletion_costs["failed"] += 1
            self._plan.failed(self._clock(), self._backoff.failed(self._rng.random(), exc.retry_after_seconds))
            return
        self._backoff.worked()
        self._outage.worked()
        self._measures.pod_deletion_costs["written"] += 1
        self._plan.written(self._clock(), load)


__all__ = ["LOOK_SECONDS", "PodCost"]
