"""A primary with one replica, and gateways' sides of Redis that wait for it: whole, or dying before they reveal."""

import asyncio
import random
from contextlib import AsyncExitStack, suppress
from typing import Any

from gateway.adapters.redis_store import StoreScripts
from gateway.app.redis_side import RedisSide
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionRef
from gateway.ports import Unreplicated
from gateway.settings import AppendSettings, RedisSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.stage import Stage, data

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
    """`gateway` as often as wanted; those of one kind share their connections, each call has a session of its own."""

    def __init__(self, primary: Server, replica: Server, stack: AsyncExitStack) -> None:
        self.primary, self.replica = primary, replica
        self._stack = stack
        self._sides: dict[tuple[int, bool], RedisSide] = {}

    async def gateway(self, *, ref: SessionRef | None = None, min_replicas: int = 1, dies: bool = False) -> HeldStage:
        """`dies`: it reveals nothing any more."""
        side = self._sides.get((min_replicas, dies))
        if side is None:
            side = self._sides[(min_replicas, dies)] = await self._made(min_replicas, dies=dies)
        return HeldStage(side, self.primary.admin, ref)

    async def _made(self, min_replicas: int, *, dies: bool) -> RedisSide:
        settings = Settings(
            redis=RedisSettings(
                url=f"redis://127.0.0.1:{self.primary.port}/0",  # type: ignore[arg-type]
                backoff_min_ms=1,
                backoff_max_ms=20,
            ),
            append=AppendSettings(min_replicas=min_replicas, replica_wait_seconds=WAIT_SECONDS),
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
        return side

    async def well(self) -> None:
        """Returns when the replica follows, and appends are taken that wait for it."""
        self.replica.thaw()
        async with asyncio.timeout(BOUND_SECONDS):
            while True:
                with suppress(Unreplicated):
                    stage = await self.gateway()
                    await stage.put(data())
                    return
                await asyncio.sleep(0.02)


async def _end(tasks: "list[asyncio.Task[None]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


__all__ = ["BOUND_SECONDS", "HeldStage", "Pair"]
