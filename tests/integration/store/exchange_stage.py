"""The stage of the store's tests, with deadlines, inbox and exchange beside it."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.deadlines import RedisDeadlines
from gateway.adapters.redis_store.exchange import RedisExchange
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.inbox import RedisInbox
from gateway.adapters.redis_store.offers import Offers
from gateway.adapters.redis_store.run_store import RedisRunStore
from gateway.adapters.redis_store.scripts import constants
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import ProducerName, Tenant
from gateway.domain.wire.payload import make_item
from gateway.ports import Appended, AppendOutcome, AppendRequest, Order, ProducerRef
from gateway.settings import Settings
from tests.integration.store.stage import REDIS, Stage, data

PUSH = ProducerRef(ProducerName("/push"), 0, registers=True)


class ExchangeStage(Stage):
    """With an inbox and a tenant of its own."""

    def __init__(self, client: Client, scripts: StoreScripts, exchange: ExchangeScripts, admin: Any) -> None:
        super().__init__(client, scripts, admin)
        self.tenant = Tenant(self.ref.session)
        self.shards = 4
        self.deadlines = RedisDeadlines(client, exchange)
        self.exchange = RedisExchange(client, exchange, scripts)
        self.offers = Offers(client, exchange, scripts)
        self.inbox = RedisInbox(client, exchange, shards=self.shards)
        self.runs = RedisRunStore(client, client, scripts, exchange.stop_run)
        self._made_with = client, exchange

    def with_webhooks(self) -> RedisInbox:
        """The same inbox as gateways see it that bring this tenant's items to webhooks."""
        client, exchange = self._made_with
        return RedisInbox(client, exchange, shards=self.shards, webhook_tenants=(self.tenant,))

    async def offer(
        self,
        *items: Item,
        number: int,
        producer: ProducerRef = PUSH,
        order: Order | None = Order.REORDER,
        is_noted: bool = True,
        code: str = "",
        **more: Any,
    ) -> AppendOutcome:
        """`is_noted`: with a due note of this moment."""
        due_ms = self.server_ms() if is_noted else None
        request = AppendRequest(self.ref, tuple(items), producer, number, order=order, due_ms=due_ms, **more)
        return await self.offers.offer(request, code)

    async def offered(self, *texts: str, number: int, **more: Any) -> Appended:
        """Data messages that must be taken."""
        outcome = await self.offer(*map(data, texts), number=number, **more)
        assert isinstance(outcome, Appended), outcome
        return outcome

    @staticmethod
    def numbered(by: int, number: int) -> Item:
        """Says of itself who sent it under which number."""
        return make_item({"kind": "data", "by": by, "n": number})

    def payloads(self) -> list[dict[str, Any]]:
        """What is in the log, as a reader gets it."""
        return [json.loads(fields["f"])["payload"] for _, fields in self.admin.xrange(self.key("log"))]

    def texts(self) -> list[str]:
        """Texts; what has none by its kind."""
        return [payload.get("text", payload["kind"]) for payload in self.payloads()]

    def let_wait(self, ms: int) -> None:
        """What waits in the window came `ms` earlier."""
        lines = self.admin.hget(self.key("pending"), "#")
        aged = []
        for line in (lines or "").split("\n"):
            number, since, rest = line.split(" ", 2)
            aged.append(f"{number} {int(since) - ms} {rest}")
        self.admin.hset(self.key("pending"), "#", "\n".join(aged))

    def server_ms(self) -> int:
        seconds, us = self.admin.time()
        return int(seconds * 1000 + us // 1000)


@asynccontextmanager
async def exchanging(address: Address, admin: Any, settings: Settings | None = None) -> AsyncIterator[ExchangeStage]:
    settings = settings or Settings()
    log_settings = (settings.retention, settings.limits, settings.routes, settings.redis, settings.runs)
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
