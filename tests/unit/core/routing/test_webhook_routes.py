"""Webhooks by the route table: attempts counted, the fallback, the deadline, the lane, and a table that changes."""

import asyncio

import pytest

from gateway.domain.routing.table import RouteTable
from gateway.ports.inbox import QUEUE_SHARDS_FROM
from tests.unit.core.test_webhooks import REFUSED, Scene, receiver, running
from tests.unit.domain.routing.located import table_of

pytestmark = pytest.mark.looptime
JOB = "post_processing"


class Routed(Scene):
    def __init__(self, rows: str, *receivers: object, parallel: int = 16) -> None:
        super().__init__(*receivers, parallel=parallel)  # type: ignore[arg-type]
        self.table: RouteTable = table_of(rows)
        self.webhooks.table_for = lambda _tenant, _key: self.table
        self.webhooks.wall_clock = asyncio.get_running_loop().time

    @property
    def queued(self) -> list[int]:
        return [shard for _, shard, _ in self.inbox.deposits]


@pytest.mark.parametrize("attempts", [1, 2, 5])
async def test_it_is_posted_as_often_as_its_row_says_at_the_pauses_it_says_and_then_queued(attempts: int) -> None:
    it = Routed(f"{JOB}: {{'*': {{retry: {{attempts: {attempts}, backoff: fixed, initial_seconds: 3}}}}}}")
    it.poster.answers["1"] = [REFUSED] * 99
    it.put("1", kind=JOB)
    async with running(it):
        await asyncio.sleep(60)

    assert [3.0 * number for number in range(attempts)] == [at for *_, at in it.poster.posts]
    assert ([QUEUE_SHARDS_FROM], [(0, "1-0")], []) == (it.queued, it.inbox.acked, it.inbox.buried)
    assert (1, 1) == (it.measures.webhook_items["queued"], it.measures.route_fallbacks[it.table.name])


async def test_without_a_fallback_it_is_a_dead_letter() -> None:
    it = Routed(f"{JOB}: {{'*': {{fallback: none, retry: none}}}}")
    it.poster.answers["1"] = [REFUSED]
    it.put("1", kind=JOB)
    async with running(it):
        await asyncio.sleep(5)

    assert [((0, "1-0"), "webhook hook: status 500 after 1 attempts")] == it.inbox.buried
    assert [] == it.queued


async def test_what_is_for_the_queue_is_never_posted() -> None:
    it = Routed("user_text: {order: {channel: queue}}")
    it.put("1", payload={"kind": "order"})
    it.put("2", payload={"kind": "note"})
    async with running(it):
        await asyncio.sleep(5)

    assert (["2"], [QUEUE_SHARDS_FROM]) == (it.poster.items, it.queued)
    assert 0 == it.measures.route_fallbacks[it.table.name]


async def test_what_no_receiver_wants_goes_to_the_queue_or_to_the_dead_letters_and_is_not_dropped() -> None:
    it = Routed(f"{JOB}: {{alone: {{fallback: none}}}}", receiver(kinds=("viewers",)))
    it.put("1", kind=JOB, payload={"kind": "any"})
    it.put("2", kind=JOB, payload={"kind": "alone"})
    async with running(it):
        await asyncio.sleep(5)

    assert ([QUEUE_SHARDS_FROM], 1) == (it.queued, it.measures.route_fallbacks[it.table.name])
    assert [((0, "2-0"), "no webhook wants post_processing, and the route has no fallback")] == it.inbox.buried
    assert 0 == it.measures.webhook_items["skipped"]


async def test_after_its_deadline_it_is_posted_no_more_and_reported() -> None:
    it = Routed(f"{JOB}: {{'*': {{retry: {{attempts: 50, backoff: fixed, initial_seconds: 2}}}}}}")
    it.poster.answers["1"] = [REFUSED] * 99
    it.put("1", kind=JOB, expires_at=5_000)
    it.put("2", kind=JOB, session="other", expires_at=0)
    async with running(it):
        await asyncio.sleep(60)

    assert [("1", 0.0), ("1", 2.0), ("1", 4.0)] == [(item, at) for _, item, _, at in it.poster.posts]
    assert {"its deadline passed"} == {reason for _, reason in it.inbox.buried}
    assert (2, 2) == (it.measures.webhook_items["expired"], it.measures.route_expired[it.table.name])


async def test_a_table_that_changes_holds_for_what_waits() -> None:
    it = Routed(f"{JOB}: {{'*': {{fallback: none, retry: {{attempts: 2, backoff: fixed, initial_seconds: 5}}}}}}")
    it.poster.answers["1"] = [REFUSED] * 9
    it.put("1", kind=JOB)
    it.put("2", kind=JOB)
    async with running(it):
        await asyncio.sleep(1)
        it.table = table_of(f"{JOB}: {{'*': {{channel: queue}}}}")
        await asyncio.sleep(20)

    assert (["1", "1"], [(0, "2-0")]) == (it.poster.items, it.inbox.acked)
    assert [QUEUE_SHARDS_FROM] == it.queued


async def test_of_what_waits_for_a_turn_the_higher_lane_goes_first() -> None:
    it = Routed(f"{JOB}: {{a: {{lane: low}}, b: {{lane: high}}}}", parallel=1)
    it.poster.seconds = 2
    it.put("0", session="0", kind=JOB)
    for number, kind in enumerate("aabb", 1):
        it.put(f"{kind}{number}", session=str(number), kind=JOB, payload={"kind": kind})
    async with running(it):
        await asyncio.sleep(30)

    assert ["0", "b3", "b4", "a1", "a2"] == it.poster.items
