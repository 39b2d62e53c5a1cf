"""Puts together a gateway's part in its cluster: its record, its end, giving clients away. Called by compose."""

import random
from collections.abc import Callable

from gateway.app.pod_side import PodSide, pod_side
from gateway.app.redis_side import RedisSide
from gateway.core.drainer import Drainer
from gateway.core.hub import Hub
from gateway.core.members import Members
from gateway.core.peers import Peers
from gateway.core.rebalancer import Rebalancer
from gateway.core.runs.runs import Runs
from gateway.core.standings import Standings
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, GatewayRecord
from gateway.settings import Settings


class ClusterSide:
    """One per gateway."""

    def __init__(
        self,
        hub: Hub,
        kept: RedisSide,
        peers: Peers,
        runs: Runs,
        owner: TaskOwner,
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        clock: Clock,
        rng: random.Random,
        describe: Callable[[], GatewayRecord],
        on_forgotten: Callable[[], None],
        on_terminating: Callable[[], None],
    ) -> None:
        """`on_forgotten`: Redis knows this gateway no more. `on_terminating`: its pod is being deleted."""
        directory = kept.directory
        self._members = Members(directory, settings.members, describe, clock=clock, on_forgotten=on_forgotten)
        self.drainer = Drainer(
            hub,
            self._members,
            settings.drain,
            owner,
            clock,
            standings=Standings(kept.runs),
            end_ingests=runs.drain,
            take_ingests=runs.reopen,
        )
        self._rebalancer = Rebalancer(
            hub,
            peers,
            directory,
            Standings(kept.runs),
            settings.rebalance,
            measures,
            gateway=gateway,
            overlap_seconds=settings.drain.overlap_seconds,
            clock=clock,
            rng=rng,
        )
        self.pods: PodSide | None = pod_side(
            hub, runs, self.drainer, measures, settings.cluster, clock=clock, rng=rng, on_terminating=on_terminating
        )
        if self.pods is not None:
            peers.reachable = self.pods.watch.among

    def start(self, owner: TaskOwner) -> None:
        owner.forever("members", self._members.run())
        owner.forever("rebalancer", self._rebalancer.run())
        if self.pods is not None:
            self.pods.start(owner)

    async def close(self) -> None:
        """After everything that runs for ever has ended."""
        if self.pods is not None:
            await self.pods.close()


__all__ = ["ClusterSide"]
