"""Puts together a gateway's part on Kubernetes; loads its client only where it is wanted. Called by cluster_side."""

import random
import socket
from collections.abc import Callable
from dataclasses import dataclass

from gateway.core.drainer import Drainer
from gateway.core.hub import Hub
from gateway.core.pods import PodCost, PodWatch
from gateway.core.runs.runs import Runs
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.pods.deletion_cost import Load
from gateway.ports import Clock
from gateway.ports.pods import Pods
from gateway.settings import ClusterSettings


@dataclass(frozen=True, slots=True)
class PodSide:
    """One per gateway at most."""

    watch: PodWatch
    _cost: PodCost | None
    _pods: Pods

    @property
    def is_away(self) -> bool:
        return self.watch.is_away or (self._cost is not None and self._cost.is_away)

    def start(self, owner: TaskOwner) -> None:
        owner.forever("pod-watch", self.watch.run())
        if self._cost is not None:
            owner.forever("pod-cost", self._cost.run())

    async def close(self) -> None:
        await self._pods.close()


def pod_side(
    hub: Hub,
    runs: Runs,
    drainer: Drainer,
    measures: Measures,
    settings: ClusterSettings,
    *,
    clock: Clock,
    rng: random.Random,
    on_terminating: Callable[[], None],
) -> PodSide | None:
    """None: it is off, and nothing of it was loaded."""
    if not settings.kubernetes:
        return None
    from gateway.adapters.kube import KubePods  # noqa: PLC0415  half a second and 60 MB, before anybody is served

    pod = settings.pod_name or socket.gethostname()

    def load() -> Load | None:
        if drainer.is_final:
            return None
        return Load(len(runs.open), len(hub.connections), drainer.is_draining)

    pods = KubePods(settings, pod)
    watch = PodWatch(pods, measures, pod=pod, uid=settings.pod_uid, clock=clock, rng=rng, on_terminating=on_terminating)
    cost = None
    if settings.pod_deletion_cost:
        cost = PodCost(pods, measures, load, every_seconds=settings.deletion_cost_seconds, clock=clock, rng=rng)
    return PodSide(watch, cost, pods)


__all__ = ["PodSide", "pod_side"]
