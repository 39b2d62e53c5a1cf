"""Webhooks: in order within a session, until acknowledged or dead; a receiver that is down loses nothing (G12)."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from gateway.core.attempts import Attempts
from gateway.core.inbox import InboxDesk
from gateway.core.tasks import TaskOwner
from gateway.core.webhooks import EXTEND_SECONDS, HELD_ITEMS, LEASE_SECONDS, Webhooks
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Posted, PostOutcome
from gateway.settings import InboxSettings, Receiver, RedisSettings, WebhookSettings
from tests.unit.core.fake_agent import FakeInbox, FakePeers

pytestmark = pytest.mark.looptime

HERE = GatewayId("gw-1")
OK, REFUSED = Posted(PostOutcome.OK, "status 200"), Posted(PostOutcome.REFUSED, "status 500")


def receiver(name: str = "hook", **fields: Any) -> Receiver:
    return Receiver(name=name, url="https://agents.example/hook", secret="s" * 32, **fields)


class FakePoster:
    """Answers what `answers` says for an item id, then OK."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Posted]] = {}
        self.posts: list[tuple[str, str, int, float]] = []
        """Receiver, item id, attempt, when."""
        self.seconds = 0.0
        self.at_once = 0
        self.most_at_once = 0
        self.down_until = 0.0

    async def post(
        self, receiver: Receiver, body: bytes, *, item_id: str, attempt: int, traceparent: str | None
    ) -> Posted:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        now = asyncio.get_running_loop().time()
        self.posts.append((receiver.name, item_id, attempt, now))
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        if now < self.down_until:
            return Posted(PostOutcome.FAILED, "no connection")
        answers = self.answers.get(item_id, [])
        return answers.pop(0) if answers else OK

    @property
    def items(self) -> list[str]:
        return [item for _, item, _, _ in self.posts]


class Scene:
    def __init__(self, *receivers: Receiver, **settings: Any) -> None:
        clock = asyncio.get_running_loop().time
        rng = random.Random(1)
        self.inbox = FakeInbox()
        self.poster = FakePoster()
        self.peers = FakePeers()
        self.owner = TaskOwner()
        self.measures = Measures()
        attempts = Attempts(RedisSettings(deadline_seconds=2), clock, rng)
        desk = InboxDesk(self.inbox, attempts, self.measures, HERE, InboxSettings(), clock)
        hooks = WebhookSettings(receivers=receivers or (receiver(),), **settings)
        self.webhooks = Webhooks(desk, self.poster, self.peers, self.owner, self.measures, HERE, hooks, rng)

    def put(self, ident: str, session: str = "s", kind: str = "input", **fields: Any) -> None:
        self.inbox.put(msgspec.json.encode({"id": ident, "kind": kind, "session": session, **fields}))


@asynccontextmanager
async def running(it: Scene) -> AsyncIterator[None]:
    it.webhooks.start()
    try:
        yield
    finally:
        await it.owner.stop(1)


async def test_items_are_posted_and_then_acknowledged() -> None:
    it = Scene()
    it.put("1")
    async with running(it):
        await asyncio.sleep(1)

    assert [("hook", "1", 1, 0)] == it.poster.posts
    assert [(0, "1-0")] == it.inbox.acked
    assert (1, 1) == (it.measures.webhook_posts["ok"], it.measures.webhook_items["delivered"])
    assert int(LEASE_SECONDS * 1000) == it.inbox.takes[0][3]


async def test_a_session_waits_for_its_first_item_and_other_sessions_do_not() -> None:
    it = Scene()
    it.poster.answers["a1"] = [REFUSED] * 3
    for ident in ("a1", "a2", "b1", "a3"):
        it.put(ident, session=ident[0])
    async with running(it):
        await asyncio.sleep(30)

    assert ["a1", "b1"] == it.poster.items[:2]
    assert ["a1", "a1", "a1", "a1", "a2", "a3"] == [item for item in it.poster.items if item[0] == "a"]
    assert [1, 2, 3, 4] == [attempt for _, item, attempt, _ in it.poster.posts if item == "a1"]


async def test_a_receiver_that_is_down_for_a_minute_loses_nothing() -> None:
    it = Scene()
    it.poster.down_until = 60
    names = [f"{session}{number}" for session in "abc" for number in range(3)]
    for name in names:
        it.put(name, session=name[0])
    async with running(it):
        await asyncio.sleep(200)

    assert len(names) == len(it.inbox.acked) == it.measures.webhook_items["delivered"]
    assert [] == it.inbox.buried
    for session in "abc":
        delivered = [item for _, item, _, at in it.poster.posts if at >= 60 and item[0] == session]
        assert [f"{session}{number}" for number in range(3)] == delivered


async def test_after_the_last_attempt_it_goes_to_the_dead_letters_and_the_next_one_is_tried() -> None:
    it = Scene(receiver(attempts=3))
    it.poster.answers["1"] = [REFUSED] * 9
    it.put("1")
    it.put("2")
    async with running(it):
        await asyncio.sleep(60)

    assert ["1", "1", "1", "2"] == it.poster.items
    assert [((0, "1-0"), "webhook hook: status 500 after 3 attempts")] == it.inbox.buried
    assert [(0, "2-0")] == it.inbox.acked
    assert (1, 1) == (it.measures.webhook_items["dead"], it.measures.webhook_items["delivered"])


async def test_the_waits_grow_with_full_jitter_and_obey_the_receivers_word() -> None:
    it = Scene(receiver(attempts=40), backoff_seconds=1, max_backoff_seconds=8)
    it.poster.answers["1"] = [Posted(PostOutcome.REFUSED, "status 429", 50)] + [REFUSED] * 30
    it.put("1")
    async with running(it):
        await asyncio.sleep(500)

    times = [at for _, _, _, at in it.poster.posts]
    waits = [after - before for before, after in pairwise(times)]
    assert 50 <= waits[0] <= 51
    assert all(0 <= wait <= 8 for wait in waits[1:])
    assert max(waits[4:]) > 5 > min(waits[4:])


async def test_leases_are_extended_as_long_as_items_are_held() -> None:
    it = Scene()
    it.poster.down_until = 45
    it.put("1")
    it.put("2")
    async with running(it):
        await asyncio.sleep(EXTEND_SECONDS * 4 + 1)

    assert [(HERE, ((0, "1-0"), (0, "2-0")))] * 4 == it.inbox.extended


async def test_only_so_many_items_are_held_and_so_many_requests_under_way() -> None:
    it = Scene(parallel=4)
    it.poster.seconds = 1
    for number in range(HELD_ITEMS * 2):
        it.put(str(number), session=str(number))
    async with running(it):
        await asyncio.sleep(0.5)
        held = len(it.inbox.taken)
        await asyncio.sleep(HELD_ITEMS)

    assert HELD_ITEMS == held
    assert 4 == it.poster.most_at_once
    assert HELD_ITEMS * 2 == len(it.inbox.acked)


async def test_an_item_goes_to_the_first_receiver_that_wants_its_kind() -> None:
    it = Scene(receiver("answers", kinds=("answer",)), receiver("inputs", kinds=("input", "answer")))
    for kind in ("answer", "input", "viewers"):
        it.put(kind, kind=kind)
    async with running(it):
        await asyncio.sleep(1)

    assert [("answers", "answer"), ("inputs", "input")] == [(name, item) for name, item, _, _ in it.poster.posts]
    assert 1 == it.measures.webhook_items["skipped"]
    assert 3 == len(it.inbox.acked)


async def test_a_repeat_of_a_delivered_item_is_acknowledged_without_bothering_the_receiver() -> None:
    it = Scene()
    for ident in ("1", "1", "2"):
        it.put(ident)
    async with running(it):
        await asyncio.sleep(1)

    assert ["1", "2"] == it.poster.items
    assert 3 == len(it.inbox.acked)
    assert (2, 1) == (it.measures.webhook_items["delivered"], it.measures.webhook_items["repeated"])


async def test_an_id_that_begins_anew_is_delivered() -> None:
    """An ask that is opened again later: its answer has the id of the first one's."""
    it = Scene()
    for timestamp in (1, 2, 2):
        it.put("ask:s:a", timestamp=timestamp)
    async with running(it):
        await asyncio.sleep(1)

    assert ["ask:s:a", "ask:s:a"] == it.poster.items
    assert 3 == len(it.inbox.acked)


async def test_an_item_that_cannot_be_read_is_a_dead_letter() -> None:
    it = Scene()
    it.inbox.put(b"no json")
    async with running(it):
        await asyncio.sleep(1)

    assert [((0, "1-0"), "not readable")] == it.inbox.buried


async def test_only_the_preferred_gateway_takes() -> None:
    it = Scene()
    it.peers.is_mine = False
    it.put("1")
    async with running(it):
        await asyncio.sleep(5)
        taken_before = list(it.inbox.takes)
        it.peers.is_mine = True
        await asyncio.sleep(2)

    assert [] == taken_before
    assert ["1"] == it.poster.items
    assert {"webhooks:default"} == set(it.peers.asked)


async def test_redis_away_is_waited_for() -> None:
    it = Scene()
    it.inbox.faults.before += ["take"] * 200
    async with running(it):
        await asyncio.sleep(60)
        it.inbox.faults.before.clear()
        it.put("1")
        await asyncio.sleep(30)

    assert ["1"] == it.poster.items


async def test_an_outcome_that_redis_does_not_hear_leaves_the_item_to_its_lease() -> None:
    it = Scene()
    it.inbox.faults.before += ["ack"] * 1_000
    it.put("1")
    async with running(it):
        await asyncio.sleep(5)

    assert [(0, "1-0")] == list(it.inbox.taken)
    assert 0 == it.measures.webhook_items["delivered"]


async def test_without_receivers_nothing_runs() -> None:
    it = Scene()
    it.webhooks.settings = WebhookSettings()

    it.webhooks.start()

    assert 0 == len(it.owner)
