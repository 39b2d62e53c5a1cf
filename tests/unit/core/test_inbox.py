"""The desk of the inbox: long polls woken by the bus, limits, who may, and its figures."""

import asyncio
import random
from dataclasses import replace

import pytest

from gateway.core.attempts import Attempts
from gateway.core.inbox import FORGET_SECONDS, LATE, MAX_WAIT_SECONDS, InboxDesk
from gateway.domain.access.principal import EVERYBODY, Scope
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, SessionId, Tenant
from gateway.ports import InboxLag
from gateway.ports.inbox import QUEUE_SHARDS_FROM
from gateway.settings import InboxSettings, RedisSettings
from tests.unit.core.fake_agent import FakeInbox

pytestmark = pytest.mark.looptime

ACME = Tenant("acme")
HERE = GatewayId("gw-1")


class Scene:
    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self.inbox = FakeInbox()
        self.measures = Measures()
        attempts = Attempts(RedisSettings(deadline_seconds=2), self.clock, random.Random(1))
        self.desk = InboxDesk(self.inbox, attempts, self.measures, HERE, InboxSettings(), self.clock)


async def test_what_is_there_is_taken_at_once_under_the_lease() -> None:
    it = Scene()
    first = it.inbox.put(b"1")
    again = it.inbox.put(b"2", deliveries=2)

    assert [first, again] == await it.desk.take(ACME, "c", 10, 5, 60)
    assert [(ACME, "c", 10, 5_000, HERE)] == it.inbox.takes
    assert (2, 1, 0) == (it.measures.inbox_taken, it.measures.inbox_redelivered, it.clock())


async def test_a_long_poll_is_woken_by_the_notice_of_its_tenant() -> None:
    it = Scene()
    taking = asyncio.create_task(it.desk.take(ACME, "c", 10, None, 60))
    await asyncio.sleep(1)
    it.desk.on_deposit(Tenant("another"))
    await asyncio.sleep(1)
    item = it.inbox.put(b"1")
    it.desk.on_deposit(ACME)

    assert [item] == await taking
    assert (2, 2) == (it.clock(), len(it.inbox.takes))


async def test_a_lost_notice_and_a_lease_that_ended_cost_five_seconds() -> None:
    it = Scene()
    taking = asyncio.create_task(it.desk.take(ACME, "c", 10, None, 60))
    await asyncio.sleep(1)
    it.inbox.put(b"1")

    assert 1 == len(await taking)
    assert 5 == it.clock()


async def test_nothing_is_taken_for_a_consumer_that_left_meanwhile() -> None:
    it = Scene()
    is_there = [True]
    taking = asyncio.create_task(it.desk.take(ACME, "c", 10, None, 60, lambda: is_there[0]))
    await asyncio.sleep(1)
    is_there[0] = False
    it.inbox.put(b"1")
    it.desk.on_deposit(ACME)

    assert [] == await taking
    assert 1 == len(it.inbox.waiting)


async def test_a_gateway_that_stops_answers_at_once_and_is_told_nothing_more() -> None:
    it = Scene()
    taking = asyncio.create_task(it.desk.take(ACME, "c", 10, None, 60))
    await asyncio.sleep(1)
    it.desk.waits.end()
    await it.desk.leave()

    assert [] == await taking
    assert 1 == it.clock()
    assert [(ACME, HERE)] == it.inbox.left


async def test_a_long_poll_is_bounded_and_its_last_look_registers_nobody() -> None:
    it = Scene()

    assert [] == await it.desk.take(ACME, "c", 10, None, 10_000)
    assert MAX_WAIT_SECONDS == it.clock()
    assert it.inbox.takes[-1][4] is None
    assert it.inbox.takes[0][4] == HERE


@pytest.mark.parametrize(
    ("limit", "lease", "is_taken"),
    [
        (0, None, False),
        (1, None, True),
        (100, None, True),
        (101, None, False),
        (1, 0.9, False),
        (1, 1, True),
        (1, 3_600, True),
        (1, 3_601, False),
    ],
)
async def test_takes_out_of_the_limits_are_refused(limit: int, lease: float | None, is_taken: bool) -> None:
    it = Scene()

    if is_taken:
        await it.desk.take(ACME, "c", limit, lease, 0)
    else:
        with pytest.raises(RelayError) as refused:
            await it.desk.take(ACME, "c", limit, lease, 0)
        assert ErrorCode.BAD_REQUEST is refused.value.code
    assert is_taken == bool(it.inbox.takes)


@pytest.mark.parametrize(
    ("scopes", "patterns", "may"),
    [
        ({Scope.CONSUME}, None, True),
        ({Scope.CONSUME}, ("*",), True),
        ({Scope.CONSUME}, ("chat-*",), False),
        ({Scope.PUBLISH}, ("*",), True),
        ({Scope.PUBLISH}, ("chat-*",), False),
        ({Scope.PUBLISH}, None, False),
        ({Scope.SUBSCRIBE, Scope.ADMIN}, ("*",), False),
    ],
)
def test_the_inbox_is_for_those_who_may_see_all_of_the_tenant(
    scopes: set[Scope], patterns: tuple[str, ...] | None, may: bool
) -> None:
    principal = replace(EVERYBODY, tenant=ACME, scopes=frozenset(scopes), patterns=patterns)

    if may:
        assert ACME == InboxDesk.check(principal)
        principal = replace(principal, only_session=SessionId("chat"))
    with pytest.raises(RelayError) as refused:
        InboxDesk.check(principal)
    assert ErrorCode.FORBIDDEN is refused.value.code


async def test_acks_and_burials_are_repeated_until_they_are_heard_and_counted_once() -> None:
    it = Scene()
    for item in (b"1", b"2"):
        it.inbox.put(item)
    first, second = await it.desk.take(ACME, "c", 10, None, 0)
    it.inbox.faults.before.append("ack")

    assert 1 == await it.desk.ack(ACME, [(first.shard, first.entry)])
    assert 1 == await it.desk.bury(ACME, [(second.shard, second.entry)], "x" * 1_000)
    assert (1, 1) == (it.measures.inbox_acked, it.measures.inbox_buried)
    assert 200 == len(it.inbox.buried[0][1])


async def test_the_figures_are_of_tenants_lately_served() -> None:
    it = Scene()
    it.inbox.lags = {ACME: InboxLag(3, 1, 500), Tenant("b"): InboxLag(2, 0, 9_000)}
    await it.desk.take(ACME, "c", 1, None, 0)
    await it.desk.lag(Tenant("b"))
    await it.desk.read_lags()

    assert InboxLag(5, 1, 9_000) == it.desk.known_lag
    it.inbox.faults.before.append("lag")
    await it.desk.read_lags()
    assert InboxLag(5, 1, 9_000) == it.desk.known_lag
    await asyncio.sleep(FORGET_SECONDS)
    await it.desk.read_lags()
    assert InboxLag(0, 0, 0) == it.desk.known_lag


async def test_what_is_past_its_deadline_goes_to_the_dead_letters_and_not_to_consumers() -> None:
    it = Scene()
    now_ms = 1_800_000_000_000
    it.desk = replace(it.desk, wall_clock=lambda: now_ms / 1000)
    it.measures.route_expired["v1"] = 0
    late = [it.inbox.put(b'{"id":"%d","expires_at":%d,"route":"v1"}' % (n, now_ms - n)) for n in (0, 1)]
    fresh = it.inbox.put(b'{"id":"3","expires_at":%d,"route":"v1"}' % (now_ms + 1))
    odd = it.inbox.put(b'{"id":"4","text":"\\"expires_at\\":1","expires_at":"soon"}')

    assert [fresh, odd] == await it.desk.take(ACME, "c", 10, 5, 0)
    assert [((item.shard, item.entry), LATE) for item in late] == it.inbox.buried
    assert {"v1": 2} == dict(it.measures.route_expired)


async def test_webhooks_pass_on_what_others_are_to_have_and_acknowledge_it_then() -> None:
    it = Scene()
    item = it.inbox.put(b"1", 2)
    (taken,) = await it.desk.take(ACME, "hook", 10, 5, 0, for_webhooks=True)

    await it.desk.pass_on(ACME, taken)

    assert [(ACME, 2 + QUEUE_SHARDS_FROM, (b"1",))] == it.inbox.deposits
    assert [(item.shard, item.entry)] == it.inbox.acked
    assert [] == await it.desk.take(ACME, "hook", 10, 5, 0, for_webhooks=True)
    assert 1 == len(await it.desk.take(ACME, "c", 10, 5, 0))


async def test_a_full_queue_keeps_an_item_where_it_is() -> None:
    it = Scene()
    it.inbox.put(b"1")
    (taken,) = await it.desk.take(ACME, "hook", 10, 5, 0, for_webhooks=True)
    it.inbox.is_full = True

    with pytest.raises(RelayError, match="full"):
        await it.desk.pass_on(ACME, taken)
    assert [] == it.inbox.acked
