"""The consumer: repeats, backoff, the next URL, leases that end while an item waits its turn, and what is final."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.client import inbox as module
from gateway.adapters.client.inbox import Inbox, InboxError, InboxItem, InboxSettings
from gateway.adapters.client.settings import BackoffSettings
from tests.unit.adapters.client.fake_gateway import serving

QUICK = InboxSettings(lease_seconds=10, max_items=3, wait_seconds=0.2, backoff=BackoffSettings(0.01, 0.05))


@dataclass
class FakeInbox:
    """Answers takes from `batches`, statuses first."""

    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    asked: list[tuple[str, Any]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        what = request.match_info["what"]
        self.asked.append((what, json.loads(body or b"null")))
        if self.statuses:
            status = self.statuses.pop(0)
            error = {"error": {"code": "x", "message": "the reason", "details": {}}}
            return web.json_response(error, status=status, headers={"Retry-After": "0"})
        if what != "take":
            return web.json_response({"extended": 1, "acked": 1})
        if not self.batches:
            await asyncio.sleep(0.05)
        return web.json_response({"items": self.batches.pop(0) if self.batches else []})

    @property
    def acked(self) -> list[str]:
        return [receipt for what, body in self.asked if what == "ack" for receipt in body["items"]]


def taken(ident: str, receipt: str = "", deliveries: int = 1) -> dict[str, Any]:
    item = {"id": ident, "kind": "input", "session": "s", "payload": {"text": ident}}
    return {"receipt": receipt or f"0/{ident}-0", "deliveries": deliveries, "item": item}


@asynccontextmanager
async def consumer(
    fake: FakeInbox, settings: InboxSettings = QUICK, before: str = "", **more: Any
) -> AsyncIterator[Inbox]:
    async with serving(web.route("*", "/v1/inbox/{what}", fake.handle)) as url:
        urls = [before, url] if before else [url]
        async with Inbox(urls, "c", token="t", settings=settings, rng=random.Random(1), **more) as inbox:
            yield inbox


async def some(inbox: Inbox, count: int, each: Callable[[InboxItem], Any] | None = None) -> list[str]:
    ids: list[str] = []
    async with asyncio.timeout(10):
        async for item in inbox:
            ids.append(item.id)
            await (each(item) if each is not None else item.ack())
            if len(ids) == count:
                return ids
    raise AssertionError


async def test_items_come_in_order_and_each_is_acknowledged_by_its_receipt() -> None:
    fake = FakeInbox([[taken("1"), taken("2")], [], [taken("3")]])
    async with consumer(fake) as inbox:
        assert ["1", "2", "3"] == await some(inbox, 3)

    assert ["0/1-0", "0/2-0", "0/3-0"] == fake.acked
    assert {"consumer": "c", "max": 3, "lease_ms": 10_000, "wait": 0.2} == fake.asked[0][1]


async def test_a_repeat_of_what_was_acknowledged_is_dropped_and_acknowledged_too() -> None:
    fake = FakeInbox([[taken("1")], [taken("1", "1/9-0"), taken("2")]])
    async with consumer(fake) as inbox:
        assert ["1", "2"] == await some(inbox, 2)
        assert 1 == inbox.repeats

    assert ["0/1-0", "1/9-0", "0/2-0"] == fake.acked


async def test_an_id_that_begins_anew_is_no_repeat() -> None:
    """An ask that is opened again later: its answer has the id of the first one's."""
    first, second = taken("1"), taken("1", "1/9-0")
    first["item"]["timestamp"], second["item"]["timestamp"] = 1, 2
    fake = FakeInbox([[first], [second, second]])
    async with consumer(fake) as inbox:
        assert ["1", "1"] == await some(inbox, 2)
        assert 0 == inbox.repeats


async def test_what_was_not_acknowledged_comes_again() -> None:
    fake = FakeInbox([[taken("1")], [taken("1", deliveries=2)]])

    async def nothing(_: InboxItem) -> None: ...

    async with consumer(fake) as inbox:
        assert ["1", "1"] == await some(inbox, 2, nothing)


async def test_an_item_whose_lease_ended_while_it_waited_is_left_to_its_next_delivery() -> None:
    now = [0.0]
    fake = FakeInbox([[taken("1"), taken("2")], [taken("2", deliveries=2)]])
    seen: list[tuple[str, int]] = []

    async def work(item: InboxItem) -> None:
        seen.append((item.id, item.deliveries))
        now[0] += 9.5
        await item.ack()

    async with consumer(fake, clock=lambda: now[0]) as inbox:
        await some(inbox, 2, work)

    assert [("1", 1), ("2", 2)] == seen


async def test_trouble_is_waited_for_and_the_next_url_is_asked() -> None:
    troubles: list[str] = []
    fake = FakeInbox([[taken("1")]], statuses=[503, 429])
    async with consumer(fake, before="http://127.0.0.1:1", on_trouble=troubles.append) as inbox:
        assert ["1"] == await some(inbox, 1)

    assert len(troubles) >= 3
    assert "trying again: the reason" in troubles


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_what_asking_again_cannot_change_is_raised(status: int) -> None:
    fake = FakeInbox(statuses=[status])
    async with consumer(fake) as inbox:
        with pytest.raises(InboxError, match="the reason"):
            await some(inbox, 1)

    assert 1 == len(fake.asked)


async def test_leases_are_extended_and_items_buried() -> None:
    fake = FakeInbox([[taken("1")]])
    seen: list[bool] = []

    async def work(item: InboxItem) -> None:
        seen.append(await item.extend())
        await item.bury("cannot")

    async with consumer(fake) as inbox:
        await some(inbox, 1, work)

    assert [True] == seen
    assert [
        ("extend", {"consumer": "c", "items": ["0/1-0"]}),
        ("bury", {"items": ["0/1-0"], "reason": "cannot"}),
    ] == fake.asked[1:3]


async def test_the_memory_for_repeats_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 2)
    fake = FakeInbox([[taken("1"), taken("2"), taken("3")], [taken("3"), taken("1")]])
    async with consumer(fake) as inbox:
        assert ["1", "2", "3", "1"] == await some(inbox, 4)


async def test_an_answer_of_another_shape_is_an_error() -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.json_response([])

    async with serving(web.route("*", "/v1/inbox/{what}", handle)) as url, Inbox([url], settings=QUICK) as inbox:
        with pytest.raises(InboxError, match="another shape"):
            await some(inbox, 1)
