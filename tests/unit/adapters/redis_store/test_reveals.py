"""Rounds of one server of a cluster: a slot on its way is the trouble of its own sessions only."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.keys import session_keys
from gateway.adapters.redis_store.reveals import Reveals
from gateway.adapters.resp import Router
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import StoreUnavailable, Unreplicated
from gateway.settings import AppendSettings, Settings

MOVING, STAYING = (SessionRef(Tenant("t"), SessionId(name)) for name in ("moving", "staying"))


class Server:
    """Keys of one session are on their way to another one."""

    incarnation = "a" * 40
    replicas = 1
    is_moving = True

    def of(self, _key: bytes) -> "Server":
        return self

    def evaluate(self, script: Any, keys: Sequence[bytes], *_: Any, **__: Any) -> "asyncio.Future[Any]":
        if script.name == "mark":
            is_moving = self.is_moving and keys[0].startswith(session_keys(MOVING).meta[: -len("meta")])
            return answered(StoreUnavailable("ASK", outcome_unknown=False) if is_moving else 1)
        return answered(b"v\n1\n1")

    def call(self, *_: Any) -> "asyncio.Future[Any]":
        return answered(self.replicas)


def answered(answer: Any) -> "asyncio.Future[Any]":
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


def made(server: Server) -> Reveals:
    base, router = Settings(), cast("Router", server)
    scripts = StoreScripts.load(base.retention, base.limits, base.routes, base.redis, base.runs)
    return Reveals(router, router, scripts, AppendSettings(min_replicas=1), Measures())


async def test_a_slot_that_moves_does_not_keep_the_sessions_of_others_waiting() -> None:
    """The mark of a round is in the slot of one of them, and it need not be that one again."""
    reveals = made(Server())
    rounds = asyncio.get_running_loop().create_task(reveals.run())
    moving = asyncio.ensure_future(reveals.seen(MOVING, b"a\ne.f\n0 1\n0", head_at=2, live_at=3))
    await asyncio.sleep(0)

    shown = b""
    async with asyncio.timeout(10):
        while not shown:
            with suppress(StoreUnavailable):  # its producer asks again
                shown = await reveals.seen(STAYING, b"a\ne.f\n0 1\n0", head_at=2, live_at=3)
    rounds.cancel()
    await asyncio.gather(rounds, return_exceptions=True)

    assert shown == b"a\ne.f\n1\n1"
    assert isinstance(moving.exception(), StoreUnavailable)


async def test_replicas_that_are_back_are_found_though_the_session_of_the_last_round_moves() -> None:
    """Nobody appends meanwhile, so rounds are about a session that is remembered: one that is asked for."""
    server = Server()
    server.replicas, server.is_moving = 0, False
    reveals = made(server)
    rounds = asyncio.get_running_loop().create_task(reveals.run())
    with suppress(StoreUnavailable):
        await reveals.seen(MOVING, b"a\ne.f\n0 1\n0", head_at=2, live_at=3)
    reveals._owed.clear()
    server.replicas, server.is_moving = 1, True

    refusals = 0
    async with asyncio.timeout(10):
        while True:
            try:
                reveals.check(STAYING)
                break
            except Unreplicated:
                refusals += 1
                await asyncio.sleep(0.02)
    rounds.cancel()
    await asyncio.gather(rounds, return_exceptions=True)

    assert refusals > 0
