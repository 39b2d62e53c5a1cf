"""A primary with one replica, and gateways' sides of Redis that wait for it: whole, or dying before they reveal."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

from gateway.adapters.redis_store import StoreScripts
from gateway.app.redis_side import RedisSide
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionRef
from gateway.settings import AppendSettings, LimitSettings, RedisSettings, RetentionSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.stage import Stage

WAIT_SECONDS = 0.3
BOUND_SECONDS = 20.0
"""For what happens by itself in well below a second."""


class HeldStage(Stage):
    """One gateway's side."""

    def __init__(self, side: RedisSide, admin: Any, ref: SessionRef | None = None) -> None:
        base = Settings()
        scripts = StoreScripts.load(base.retention, base.limits, base.routes, base.redis, base.runs)
        super().__init__(side.appends, scripts, admin)  # type: ignore[arg-type]
        self.store, self.runs, self.exchange = side.store, side.runs, side.exchange
        if ref is not None:
            self.ref = ref

    async def seen(self, *seqs: int) -> None:
        """Returns when just these may be seen."""
        async with asyncio.timeout(BOUND_SECONDS):
            while await self.seqs() != list(seqs):
                await asyncio.sleep(0.02)

    async def writes(self, call: Any, written: int) -> None:
        """The call of a gateway that dies as soon as the log has so many messages."""
        task = asyncio.ensure_future(call)
        async with asyncio.timeout(BOUND_SECONDS):
            while self.admin.xlen(self.key("log")) < written:
                await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Pair:
    """`gateway()` as often as wanted."""

    def __init__(self, primary: Server, replica: Server, stack: AsyncExitStack) -> None:
        self.primary, self.replica = primary, replica
        self._stack = stack

    async def gateway(
        self, *, ref: SessionRef | None = None, min_replicas: int = 1, dies: bool = False, max_messages: int = 1_000
    ) -> HeldStage:
        """`dies`: it reveals nothing any more."""
        settings = Settings(
            redis=RedisSettings(
                url=f"redis://127.0.0.1:{self.primary.port}/0",  # type: ignore[arg-type]
                ping_interval_seconds=0.1,
                backoff_min_ms=1,
                backoff_max_ms=20,
            ),
            append=AppendSettings(min_replicas=min_replicas, replica_wait_seconds=WAIT_SECONDS),
            retention=RetentionSettings(max_messages=max_messages),
            limits=LimitSettings(),
        )
        side = RedisSide(settings, Measures(), random.Random(1), lambda is_up, reason: None)
        tasks = []
        for name, life in side.lives():
            if name == "reveals" and dies:
                life.close()
            else:
                tasks.append(asyncio.get_running_loop().create_task(life, name=name))
        self._stack.push_async_callback(_end, tasks)
        async with asyncio.timeout(BOUND_SECONDS):
            while not side.appends.is_up or not side.reads.is_up:
                await asyncio.sleep(0.01)
        return HeldStage(side, self.primary.admin, ref)

    async def replica_is_gone(self) -> None:
        """It stands still: what is written from here on is not there."""
        self.replica.freeze()


async def _end(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def paired(primary: Server, replica: Server) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        yield Pair(primary, replica, stack)
        replica.thaw()


__all__ = ["BOUND_SECONDS", "HeldStage", "Pair", "paired"]
