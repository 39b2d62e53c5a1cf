"""Puts together what takes producers' runs: streams, single tokens, leases. Called by compose."""

import random
import time

from gateway.app.redis_side import RedisSide
from gateway.core.access import Revoked
from gateway.core.attempts import Attempts
from gateway.core.hooks import TextHooks
from gateway.core.notices import HeadsNotices
from gateway.core.quotas import Quotas
from gateway.core.runs.keeper import Keeper
from gateway.core.runs.parts import RunParts
from gateway.core.runs.runs import Runs
from gateway.core.runs.ticker import Ticker
from gateway.core.runs.tokens import Tokens
from gateway.core.subscriber import Subscriber
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Bus, Clock
from gateway.settings import Settings


class RunSide:
    """One per gateway: `listen`, then `start`."""

    def __init__(
        self,
        kept: RedisSide,
        bus: Bus,
        notices: HeadsNotices,
        owner: TaskOwner,
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        hooks: TextHooks | None,
        clock: Clock,
        rng: random.Random,
        revoked: Revoked,
        quotas: Quotas | None = None,
    ) -> None:
        self._owner = owner
        parts = RunParts(
            log=kept.store,
            runs=kept.runs,
            deadlines=kept.deadlines,
            notes=notices,
            attempts=Attempts(settings.redis, clock, rng),
            measures=measures,
            owner=owner,
            gateway=gateway,
            redis=settings.redis,
            limits=settings.limits,
            settings=settings.runs,
            clock=clock,
            rng=rng,
            hooks=hooks,
            ticker=Ticker(clock),
            quotas=quotas,
        )
        self.runs = Runs(parts)
        self.tokens = Tokens(parts, self.runs, rng)
        self._keeper = Keeper(
            parts,
            self.runs,
            kept.inbox,
            bus,
            shards=settings.inbox.shards,
            wall_clock=time.time,
            revoked=revoked,
        )

    def listen(self, subscriber: Subscriber) -> None:
        subscriber.listen(BusKind.STOPPED, self.runs.on_stopped)

    def start(self) -> None:
        self._owner.forever("run-keeper", self._keeper.run())


__all__ = ["RunSide"]
