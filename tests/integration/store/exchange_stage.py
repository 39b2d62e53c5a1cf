"""The stage of the store's tests, with deadlines, inbox and exchange beside it."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.deadlines import RedisDeadlines
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.inbox import RedisInbox
from gateway.adapters.redis_store.scripts import constants
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import Tenant
from gateway.settings import Settings
from tests.integration.store.stage import REDIS, Stage


class ExchangeStage(Stage):
    """`now` is the gateway's clock, as far as the cache of notes asks."""

    def __init__(self, client: Client, scripts: StoreScripts, exchange: ExchangeScripts, admin: Any) -> None:
        super().__init__(client, scripts, admin)
        self.now = 1000.0
        self.tenant = Tenant(self.ref.session)  # an inbox of its own
        self.shards = 4
        self.deadlines = RedisDeadlines(client, exchange, lambda: self.now)
        self.inbox = RedisInbox(client, exchange, shards=self.shards)

    def server_ms(self) -> int:
        seconds, us = self.admin.time()
        return int(seconds * 1000 + us // 1000)


@asynccontextmanager
async def exchanging(address: Address, admin: Any, settings: Settings | None = None) -> AsyncIterator[ExchangeStage]:
    settings = settings or Settings()
    log_settings = (settings.retention, settings.limits, settings.routes, settings.redis)
    scripts = StoreScripts.load(*log_settings)
    exchange = ExchangeScripts.load(
        constants(*log_settings),
        order=settings.order,
        kept=settings.kept,
        asks=settings.asks,
        outbox=settings.outbox,
        inbox=settings.inbox,
    )
    up = asyncio.Event()
    client = Client(
        address,
        REDIS,
        rng=random.Random(1),
        measures=Measures(),
        name="exchange-test",
        scripts=(*scripts, *exchange),
        on_state=lambda is_up, reason: up.set() if is_up else None,
    )
    task = asyncio.get_running_loop().create_task(client.run())
    try:
        async with asyncio.timeout(10):
            await up.wait()
        yield ExchangeStage(client, scripts, exchange, admin)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
