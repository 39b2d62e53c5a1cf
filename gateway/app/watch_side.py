"""Puts together what watches open connections: renewals, heartbeats, quality. Called by compose."""

import time

from gateway.core.coalescer import Coalescer
from gateway.core.heartbeats import Heartbeats
from gateway.core.hub import Hub
from gateway.core.qualities import Qualities, thresholds_of
from gateway.core.renewals import Renewals
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, LogStore
from gateway.settings import Settings


class WatchSide:
    """One per gateway."""

    def __init__(
        self,
        hub: Hub,
        store: LogStore,
        owner: TaskOwner,
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        clock: Clock,
    ) -> None:
        self.renewals = Renewals(hub, store, gateway, settings.routes, owner, clock)
        self._coalescer = Coalescer(measures, clock)
        self.qualities = Qualities(self._coalescer, settings.quality, measures, self.renewals.renew, clock)
        hub.shared.thresholds = thresholds_of(settings.quality)
        hub.shared.on_live = self.qualities.ease
        self.heartbeats = Heartbeats(
            hub, settings.liveness, settings.auth, measures, clock, time.time, self.qualities.look
        )

    def start(self, owner: TaskOwner) -> None:
        owner.forever("heartbeats", self.heartbeats.run())
        owner.forever("coalescer", self._coalescer.run())
        owner.forever("qualities", self.qualities.run())
        owner.forever("renewals", self.renewals.run())


__all__ = ["WatchSide"]
