"""Pushes to a user: each session that is there, and that the caller may reach, gets them once."""

import asyncio
import random
from typing import Any

import pytest

from gateway.core.ingest import Ingest
from gateway.core.user_push import UserPush
from gateway.domain.access.principal import Scope
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant, UserId
from gateway.domain.wire.payload import make_item
from gateway.settings import LimitSettings, RedisSettings
from tests.unit.core.fake_log import FakeSession
from tests.unit.core.fake_order import noted, windows
from tests.unit.core.test_access import World, principal

pytestmark = pytest.mark.looptime

ITEMS = (make_item({"kind": "data", "n": 1}),)
ANN = UserId("ann")


class NoNotes:
    def note(self, ref: Any, appended: Any) -> None: ...


def make(world: World, *sessions: str) -> UserPush:
    world.directory.users[Tenant("t"), ANN] = [SessionId(session) for session in sessions]
    loop = asyncio.get_running_loop()
    ingest = Ingest(
        world.store.as_store(),
        RedisSettings(),
        LimitSettings(),
        Measures(),
        GatewayId("gw"),
        NoNotes(),
        loop.time,
        random.Random(1),
        noted(),
        windows(),
    )
    return UserPush(world.access, ingest, world.directory.as_directory(), world.store.as_store())


def add(world: World, session: str, **fields: Any) -> FakeSession:
    state = FakeSession(**fields)
    world.store.log.sessions[SessionRef(Tenant("t"), SessionId(session))] = state
    return state


async def test_each_session_of_the_user_gets_the_message() -> None:
    world = World()
    one, two = add(world, "chat-1"), add(world, "chat-2")

    deliveries = await make(world, "chat-2", "chat-1").push(principal(), ANN, ITEMS, None)

    assert [delivery.session for delivery in deliveries] == ["chat-1", "chat-2"]
    assert len(one.items) == len(two.items) == 1


async def test_what_expired_or_was_deleted_is_not_brought_back() -> None:
    world = World()
    add(world, "chat-gone", is_gone=True)

    deliveries = await make(world, "chat-gone", "chat-expired").push(principal(), ANN, ITEMS, None)

    assert deliveries == []
    assert [ref.session for ref in world.store.log.sessions] == ["chat-gone"]


async def test_a_session_that_is_another_users_by_now_gets_nothing() -> None:
    world = World()
    foreign, own = add(world, "chat-1", owner=UserId("bob")), add(world, "chat-2", owner=ANN)

    deliveries = await make(world, "chat-1", "chat-2").push(principal(), ANN, ITEMS, None)

    assert [delivery.session for delivery in deliveries] == ["chat-2"]
    assert (len(foreign.items), len(own.items)) == (0, 1)


async def test_sessions_outside_the_callers_reach_are_left_out_silently() -> None:
    world = World()
    foreign, mine = add(world, "chat-1", owner=UserId("bob")), add(world, "chat-2", owner=ANN)
    outside = add(world, "private")

    by_pattern = await make(world, "private").push(principal(), ANN, ITEMS, None)
    by_owner = await make(world, "chat-1", "chat-2").push(principal(patterns=None), ANN, ITEMS, None)

    assert by_pattern == []
    assert [delivery.session for delivery in by_owner] == ["chat-2"]
    assert (len(foreign.items), len(mine.items), len(outside.items)) == (0, 1, 0)


async def test_a_repeat_with_the_key_reaches_only_what_was_missed() -> None:
    world = World()
    one = add(world, "chat-1")
    await make(world, "chat-1").push(principal(), ANN, ITEMS, "key")
    two = add(world, "chat-2")

    deliveries = await make(world, "chat-1", "chat-2").push(principal(), ANN, ITEMS, "key")

    assert [delivery.appended.results[0].duplicate for delivery in deliveries if delivery.appended] == [True, False]
    assert len(one.items) == len(two.items) == 1


async def test_one_session_that_fails_does_not_hide_the_others() -> None:
    world = World()
    add(world, "chat-1")
    add(world, "chat-2")
    push = make(world, "chat-1", "chat-2")
    now = asyncio.get_running_loop().time
    began = now()  # Redis refuses for as long as the first session's append is retried
    world.store.plan = lambda: "refused" if world.store.calls > 2 and now() < began + 5 else "ok"

    deliveries = await push.push(principal(), ANN, ITEMS, None)

    assert [delivery.error and delivery.error.code for delivery in deliveries] == [ErrorCode.UNAVAILABLE, None]


async def test_the_scope_is_needed() -> None:
    with pytest.raises(RelayError) as caught:
        await make(World()).push(principal(Scope.SUBSCRIBE), ANN, ITEMS, None)

    assert caught.value.code is ErrorCode.FORBIDDEN
