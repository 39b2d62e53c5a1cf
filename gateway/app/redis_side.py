"""The connections to Redis and everything that is kept there, for one gateway. Called by compose."""

import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from gateway.adapters.redis_store import RedisDirectory, RedisStore, StoreScripts
from gateway.adapters.redis_store.deadlines import RedisDeadlines
from gateway.adapters.redis_store.exchange import RedisExchange
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.inbox import RedisInbox
from gateway.adapters.redis_store.offers import Offers
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.redis_store.route_decisions import RedisRouteDecisions
from gateway.adapters.redis_store.run_store import RedisRunStore
from gateway.adapters.redis_store.scripts import constants
from gateway.adapters.redis_store.usage import RedisUsageBoard
from gateway.adapters.resp import RedisMediaBus
from gateway.app.redis_links import RedisLinks
from gateway.domain.measures import Measures
from gateway.settings import Settings


class RedisSide:
    """`appends` carries what writes, `reads` what may be large, `bus` what others publish for us."""

    def __init__(
        self,
        settings: Settings,
        measures: Measures,
        rng: random.Random,
        on_state: Callable[[bool, str], None],
    ) -> None:
        """`on_state`: of the connection that writes."""
        base = (
            settings.retention,
            settings.limits,
            settings.routes,
            settings.redis,
            settings.runs,
            settings.append,
        )
        scripts = StoreScripts.load(*base)
        exchange = ExchangeScripts.load(
            constants(*base),
            order=settings.order,
            kept=settings.kept,
            asks=settings.asks,
            outbox=settings.outbox,
            inbox=settings.inbox,
        )
        links = self._links = RedisLinks(settings.redis, measures, rng)
        self.appends = links.client("appends", (*scripts, *exchange, RedisUsageBoard.script), on_state)
        self.reads = links.client("reads", scripts)
        self._reveals: Reveals | None = None
        if settings.append.min_replicas:
            waits = links.client("waits", (scripts.mark,))
            self._reveals = Reveals(self.appends, waits, scripts, settings.append, measures)
        self.bus = links.bus(self.appends)
        self.media_bus = RedisMediaBus(self.reads)
        self.store = RedisStore(
            self.appends,
            self.reads,
            scripts,
            replay_page_bytes=settings.limits.replay_page_bytes,
            offers=Offers(self.appends, exchange, scripts, self._reveals),
            reveals=self._reveals,
        )
        self.runs = RedisRunStore(self.appends, self.reads, scripts, exchange.stop_run, self._reveals)
        self.directory = RedisDirectory(self.appends, scripts)
        self.exchange = RedisExchange(self.appends, exchange, scripts, self._reveals)
        self.deadlines = RedisDeadlines(self.appends, exchange, is_cluster=settings.redis.is_cluster)
        self.usage = RedisUsageBoard(self.appends)
        receivers = settings.webhooks.receivers
        webhook_tenants = {tenant for receiver in receivers for tenant in receiver.tenants}
        self.inbox = RedisInbox(self.appends, exchange, shards=settings.inbox.shards, webhook_tenants=webhook_tenants)
        self.route_decisions = RedisRouteDecisions(self.appends)

    def lives(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """What to run for ever beside `bus`, each with its name."""
        yield from self._links.lives()
        if self._reveals is not None:
            yield "reveals", self._reveals.run()


__all__ = ["RedisSide"]
