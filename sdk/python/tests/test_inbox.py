"""The consumer: repeats, the next URL, leases that are renewed and those that end, and what is final."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from relayrouter import (
    AnswerItem,
    AuthError,
    ForbiddenError,
    Inbox,
    InboxItem,
    InputItem,
    RefusedError,
    RelayError,
    RunItem,
    ViewersItem,
)
from relayrouter import inbox as module

from sdk.python.tests.run_server import QUICK, error, serving


@dataclass
class FakeInbox:
    """Answers takes from `batches`, statuses first."""

    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    """Receipts whose lease is another one's."""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read() or b"null")
        what = request.match_info.get("what", "")
        self.asked.append((what, body))
        self.news.set()
        if self.statuses:
            return error(self.statuses.pop(0), "x")
        if what == "extend":
            return web.json_response({"extended": len(set(body["items"]) - self.lost)})
        if what == "":
            return web.json_response({"waiting": 3, "dead": 1, "oldest_ms": 1500})
        if what == "dead":
            return web.json_response({"items": [{"entry": "7-0", "reason": "no", "item": {"id": "x"}}]})
        if what != "take":
            return web.json_response({"acked": 1, "redriven": 2})
        if not self.batches:
            await asyncio.sleep(0.05)
        return web.json_response({"items": self.batches.pop(0) if self.batches else []})

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def said(self, what: str) -> list[str]:
        return [receipt for word, body in self.asked if word == what for receipt in body["items"]]


def taken(ident: str, receipt: str = "", deliveries: int = 1, **fields: Any) -> dict[str, Any]:
    item = {"id": ident, "kind": "input", "session": "s", "payload": {"text": ident}, **fields}
    return {"receipt": receipt or f"0/{ident}-0", "deliveries": deliveries, "item": item}


@asynccontextmanager
async def consumer(fake: FakeInbox, before: str = "", **more: Any) -> AsyncIterator[Inbox]:
    routes = [web.route("*", "/v1/inbox", fake.handle), web.route("*", "/v1/inbox/{what}", fake.handle)]
    async with serving(*routes) as url:
        urls = [before, url] if before else [url]
        defaults: dict[str, Any] = {"lease": 10, "max_items": 3, "wait": 0.2, "timing": QUICK}
        async with Inbox(urls, consumer="c", token="t", **(defaults | more)) as inbox:
            yield inbox


async def some(inbox: Inbox, count: int, each: Callable[[InboxItem], Any] | None = None) -> list[str]:
    ids: list[str] = []
    async with asyncio.timeout(20):
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

    assert ["0/1-0", "0/2-0", "0/3-0"] == fake.said("ack")
    assert {"consumer": "c", "max": 3, "lease_ms": 10_000, "wait": 0.2} == fake.asked[0][1]


@pytest.mark.parametrize(
    ("kind", "expected", "fields"),
    [
        ("input", InputItem, {"text": "hi"}),
        ("answer", AnswerItem, {"ask": "a1", "value": "yes", "is_answered": True}),
        ("expired", AnswerItem, {"ask": "a1", "is_answered": False}),
        ("interrupt", RunItem, {"run": "r", "reason": "interrupt", "seen": {"seq": 2, "at": 5}}),
        ("cancel", RunItem, {"reason": "cancel"}),
        ("abandoned", RunItem, {"reason": "abandoned"}),
        ("viewers", ViewersItem, {"run": "r"}),
        ("of a later version", InboxItem, {"client": "phone", "user": "u1", "timestamp": 5}),
    ],
)
async def test_items_have_the_type_of_their_kind(kind: str, expected: type[InboxItem], fields: dict[str, Any]) -> None:
    payload = {"text": "hi", "value": "yes", "seen": {"seq": 2, "at": 5}}
    made = taken("1", kind=kind, ask="a1", run="r", client="phone", user="u1", timestamp=5, payload=payload)
    async with consumer(FakeInbox([[made]])) as inbox:
        [item] = await inbox.take()

    assert type(item) is expected
    assert {name: getattr(item, name) for name in fields} == fields
    assert (item.session, item.deliveries) == ("s", 1)
    assert "receipt" not in repr(item)


async def test_a_repeat_of_what_was_acknowledged_is_dropped_and_acknowledged_too() -> None:
    fake = FakeInbox([[taken("1")], [taken("1", "1/9-0"), taken("2")]])
    async with consumer(fake) as inbox:
        assert ["1", "2"] == await some(inbox, 2)
        assert inbox.repeats == 1

    assert ["0/1-0", "1/9-0", "0/2-0"] == fake.said("ack")


async def test_an_id_that_begins_anew_is_no_repeat() -> None:
    """An ask that is opened again later: its answer has the id of the first one's."""
    fake = FakeInbox([[taken("1", timestamp=1)], [taken("1", "1/9-0", timestamp=2)]])
    async with consumer(fake) as inbox:
        assert ["1", "1"] == await some(inbox, 2)
        assert inbox.repeats == 0


async def test_what_was_not_acknowledged_comes_again() -> None:
    """With the count of its deliveries; an exception in `async with item` is no acknowledgement."""
    fake = FakeInbox([[taken("1")], [taken("1", deliveries=2)]])
    deliveries: list[int] = []

    async def work(item: InboxItem) -> None:
        deliveries.append(item.deliveries)
        try:
            async with item:
                if item.deliveries == 1:
                    raise KeyError(item.id)
        except KeyError:
            pass

    async with consumer(fake) as inbox:
        assert ["1", "1"] == await some(inbox, 2, work)

    assert [1, 2] == deliveries
    assert ["0/1-0"] == fake.said("ack")


async def test_a_lease_is_renewed_while_an_item_is_worked_on_and_while_one_waits() -> None:
    """Not any more when it is acknowledged."""
    fake = FakeInbox([[taken("1"), taken("2")]])

    async def work(item: InboxItem) -> None:
        if item.id == "1":
            await fake.until(lambda: fake.said("extend").count("0/1-0") >= 3)
            await item.ack()
            fake.asked.clear()
            return
        await fake.until(lambda: fake.said("extend").count("0/2-0") >= 3)

    async with consumer(fake, lease=0.09) as inbox:
        assert ["1", "2"] == await some(inbox, 2, work)

    assert "0/1-0" not in fake.said("extend")


async def test_an_item_that_the_loop_left_is_renewed_in_its_own_task_only() -> None:
    """`async with item` holds it; one that was just forgotten is let go."""
    fake = FakeInbox([[taken("held"), taken("forgotten"), taken("last")]])
    done = asyncio.Event()
    working: list[asyncio.Task[None]] = []

    async def hold(item: InboxItem) -> None:
        async with item:
            await done.wait()

    async def work(item: InboxItem) -> None:
        if item.id == "held":
            working.append(asyncio.ensure_future(hold(item)))
            await asyncio.sleep(0)
        elif item.id == "last":
            fake.asked.clear()
            await fake.until(lambda: fake.said("extend").count("0/held-0") >= 3)

    async with consumer(fake, lease=0.09) as inbox:
        assert ["held", "forgotten", "last"] == await some(inbox, 3, work)
        extended = set(fake.said("extend"))
        done.set()
        await working[0]

    assert extended == {"0/held-0", "0/last-0"}
    assert fake.said("ack") == ["0/held-0"]


async def test_an_item_whose_lease_was_lost_while_it_waited_is_left_to_its_next_delivery() -> None:
    """Somebody else may be at work on it."""
    fake = FakeInbox([[taken("1"), taken("2")], [taken("3")]], lost={"0/2-0"})

    async def work(item: InboxItem) -> None:
        if item.id == "1":
            await fake.until(lambda: ("extend", {"consumer": "c", "items": ["0/2-0"]}) in fake.asked)
            fake.asked.clear()  # the next renewal is that of the first item alone: the answer arrived
            await fake.until(lambda: ("extend", {"consumer": "c", "items": ["0/1-0"]}) in fake.asked)

    async with consumer(fake, lease=0.3) as inbox:
        assert ["1", "3"] == await some(inbox, 2, work)


async def test_an_item_whose_lease_ended_while_it_waited_is_left_too() -> None:
    """No gateway renewed it in time."""
    now = [0.0]
    fake = FakeInbox([[taken("1"), taken("2")], [taken("2", deliveries=2)]])
    seen: list[tuple[str, int]] = []

    async def work(item: InboxItem) -> None:
        seen.append((item.id, item.deliveries))
        now[0] += 9.5
        await item.ack()

    async with consumer(fake, clock=lambda: now[0]) as inbox:
        await some(inbox, 2, work)

    assert seen == [("1", 1), ("2", 2)]


async def test_trouble_is_waited_for_and_the_next_url_is_asked() -> None:
    fake = FakeInbox([[taken("1")]], statuses=[503, 429])
    async with consumer(fake, before="http://127.0.0.1:9") as inbox:
        assert ["1"] == await some(inbox, 1)


@pytest.mark.parametrize(("status", "kind"), [(400, RefusedError), (401, AuthError), (403, ForbiddenError)])
async def test_what_asking_again_cannot_change_is_raised(status: int, kind: type[RelayError]) -> None:
    fake = FakeInbox(statuses=[status])
    async with consumer(fake) as inbox:
        with pytest.raises(kind, match="x it is"):
            await some(inbox, 1)

    assert len(fake.asked) == 1


async def test_dead_letters_are_shown_and_put_back() -> None:
    fake = FakeInbox([[taken("1")]])
    async with consumer(fake) as inbox:
        await some(inbox, 1, lambda item: item.bury("cannot"))
        [letter] = await inbox.dead()
        back = await inbox.redrive([letter.entry])
        lag = await inbox.lag()

    assert ("bury", {"items": ["0/1-0"], "reason": "cannot"}) in fake.asked
    assert (letter.entry, letter.reason, letter.item, back) == ("7-0", "no", {"id": "x"}, 2)
    assert (lag.waiting, lag.dead, lag.oldest) == (3, 1, 1.5)


async def test_the_memory_for_repeats_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 2)
    fake = FakeInbox([[taken("1"), taken("2"), taken("3")], [taken("3"), taken("1")]])
    async with consumer(fake) as inbox:
        assert ["1", "2", "3", "1"] == await some(inbox, 4)
