"""Puts together what leads from clients to agents: asks, outboxes, inbox, webhooks, sweeps. Called by compose."""

import random
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote

from gateway.adapters.webhook import HttpPoster, signing_secrets
from gateway.app.redis_side import RedisSide
from gateway.core.asks import Asks
from gateway.core.attempts import Attempts
from gateway.core.inbox import InboxDesk
from gateway.core.notices import HeadsNotices
from gateway.core.peers import Peers
from gateway.core.quotas import Quotas
from gateway.core.relay import Relay
from gateway.core.routing.plans import TableFor, shipped_table
from gateway.core.subscriber import Subscriber
from gateway.core.sweeper import Sweeper
from gateway.core.tasks import TaskOwner
from gateway.core.webhooks import Webhooks
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind
from gateway.domain.wire.ids import GatewayId, Tenant
from gateway.ports import Clock
from gateway.settings import Settings

WALL_CLOCK: Final[Callable[[], float]] = time.time


class AgentSide:
    """One per gateway: `listen`, then `start`; `leave`, then `close` when the owner's tasks have ended."""

    def __init__(
        self,
        kept: RedisSide,
        notices: HeadsNotices,
        owner: TaskOwner,
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        clock: Clock,
        rng: random.Random,
        quotas: Quotas | None = None,
        table_for: TableFor = shipped_table,
    ) -> None:
        exchange, inbox, deadlines = kept.exchange, kept.inbox, kept.deadlines
        self._owner = owner
        self.attempts = Attempts(settings.redis, clock, rng)
        self.peers = Peers(kept.directory, gateway)
        self.relay = Relay(exchange, inbox, self.attempts, owner, measures, clock, shards=settings.inbox.shards)
        self._sweeper = Sweeper(deadlines, exchange, self.peers, self.relay, notices, measures, rng)
        self.asks = Asks(
            exchange,
            deadlines,
            self.relay,
            notices,
            self.attempts,
            measures,
            gateway,
            settings.asks,
            settings.outbox,
            settings.limits,
            clock,
            WALL_CLOCK,
            quotas=quotas,
        )
        self.desk = InboxDesk(inbox, self.attempts, measures, gateway, settings.inbox, clock)
        self._poster = HttpPoster(WALL_CLOCK, signing_secrets(settings.webhooks.receivers))
        self._webhooks = Webhooks(
            self.desk, self._poster, self.peers, owner, measures, gateway, settings.webhooks, rng, table_for
        )

    def listen(self, subscriber: Subscriber) -> None:
        subscriber.listen(BusKind.ASK_RESOLVED, self._on_ask_resolved)
        subscriber.listen(BusKind.INBOX, self._on_inbox)

    def start(self) -> None:
        self._owner.forever("peers", self.peers.run())
        self._owner.forever("sweeper", self._sweeper.run())
        self._owner.forever("inbox-figures", self.desk.watch())
        self._webhooks.start()

    async def leave(self) -> None:
        """Before requests and tasks end: long polls are answered, and nothing is left in Redis."""
        self.asks.waits.end()
        self.desk.waits.end()
        await self.desk.leave()

    async def close(self) -> None:
        await self._poster.close()

    def _on_ask_resolved(self, fields: list[bytes]) -> None:
        self.asks.on_resolved(fields[0], fields[1].decode())

    def _on_inbox(self, fields: list[bytes]) -> None:
        self.desk.on_deposit(Tenant(unquote(fields[0].decode())))


__all__ = ["AgentSide"]
