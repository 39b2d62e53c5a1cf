"""The relay: in order, at least once, one task a session, bounded; what does not fit stays in the outbox (G12)."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from gateway.core.attempts import Attempts
from gateway.core.relay import FULL_SECONDS, ITEMS_A_COPY, SESSIONS_AT_ONCE, Relay, inbox_shard
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.settings import RedisSettings
from tests.unit.core.fake_agent import FakeExchange, FakeInbox
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

TENANT = Tenant("default")


def ref(name: str = "chat") -> SessionRef:
    return SessionRef(TENANT, SessionId(name))


class Scene:
    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self.exchange = FakeExchange()
        self.inbox = FakeInbox()
        self.owner = TaskOwner()
        self.measures = Measures()
        attempts = Attempts(RedisSettings(deadline_seconds=2), self.clock, random.Random(1))
        self.relay = Relay(self.exchange, self.inbox, attempts, self.owner, self.measures, self.clock, shards=4)


@pytest.fixture
async def it() -> AsyncIterator[Scene]:
    scene = Scene()
    yield scene
    await scene.owner.stop(1)


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


async def test_items_are_copied_in_order_and_then_removed(it: Scene) -> None:
    items = numbered(ITEMS_A_COPY * 2 + 1)
    it.exchange.put(ref(), *items)

    it.relay.poke(ref())
    await settle()

    assert items == it.inbox.items
    assert [] == it.exchange.outboxes[ref().key]
    assert {inbox_shard(ref().key, 4)} == {shard for _, shard, _ in it.inbox.deposits}
    assert len(items) == it.measures.relayed_items


@pytest.mark.parametrize("call", ["outbox", "deposit", "relayed"])
async def test_an_attempt_without_an_answer_is_repeated_and_nothing_is_lost(it: Scene, call: str) -> None:
    it.exchange.put(ref(), b"1", b"2")
    (it.inbox if call == "deposit" else it.exchange).faults.before.append(call)

    it.relay.poke(ref())
    await asyncio.sleep(1)

    assert [b"1", b"2"] == it.inbox.items
    assert [] == it.exchange.outboxes[ref().key]


async def test_a_deposit_whose_answer_is_lost_makes_a_repeat_and_no_hole(it: Scene) -> None:
    it.exchange.put(ref(), b"1", b"2")
    it.inbox.faults.after.append("deposit")

    it.relay.poke(ref())
    await asyncio.sleep(1)

    assert [b"1", b"2", b"1", b"2"] == it.inbox.items


async def test_redis_that_stays_away_leaves_the_items_to_the_sweep(it: Scene) -> None:
    it.exchange.put(ref(), b"1")
    it.inbox.faults.before += ["deposit"] * 1_000

    it.relay.poke(ref())
    await asyncio.sleep(3)

    assert 1 == it.measures.relays["failed"]
    assert 1 == len(it.exchange.outboxes[ref().key])
    assert 0 == len(it.owner)


async def test_a_full_inbox_keeps_the_items_and_refuses_input_early_for_a_while(it: Scene) -> None:
    it.exchange.put(ref(), b"1")
    it.inbox.is_full = True
    it.relay.check(TENANT)

    it.relay.poke(ref())
    await settle()

    with pytest.raises(RelayError) as refused:
        it.relay.check(TENANT)
    assert ErrorCode.INBOX_FULL is refused.value.code
    assert 1 == len(it.exchange.outboxes[ref().key])
    it.relay.check(Tenant("another"))
    await asyncio.sleep(FULL_SECONDS)
    it.relay.check(TENANT)


async def test_a_deposit_that_fits_again_ends_the_refusals(it: Scene) -> None:
    it.exchange.put(ref(), b"1")
    it.inbox.is_full = True
    it.relay.poke(ref())
    await settle()
    it.inbox.is_full = False

    it.relay.poke(ref())
    await settle()

    it.relay.check(TENANT)
    assert [b"1"] == it.inbox.items


async def test_a_poke_during_a_copy_leads_to_one_more_look(it: Scene) -> None:
    it.exchange.put(ref(), b"1")
    it.relay.poke(ref())
    await asyncio.sleep(0)
    it.exchange.put(ref(), b"2")
    it.relay.poke(ref())
    it.relay.poke(ref())
    tasks = len(it.owner)

    await settle()

    assert 1 == tasks
    assert [b"1", b"2"] == it.inbox.items
    assert [] == it.exchange.outboxes[ref().key]


async def test_one_task_a_session_and_only_so_many_sessions_at_once(it: Scene) -> None:
    sessions = [ref(f"chat-{number}") for number in range(SESSIONS_AT_ONCE * 3)]
    for session in sessions:
        it.exchange.put(session, b"1")

    for session in sessions + sessions:
        it.relay.poke(session)
    running = len(it.owner)
    await settle(400)

    assert SESSIONS_AT_ONCE == running
    assert len(sessions) == len(it.inbox.items)
