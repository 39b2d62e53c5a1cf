"""Heads notices: each touched session in two successive ones, to whom it was published, bounded (design.md 4)."""

import asyncio

import pytest

from gateway.core.notices import HEADS_A_NOTICE, MAX_HELD, HeadsNotices
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.bus import HeadNotice, decode_heads
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant
from gateway.ports import Appended
from gateway.settings import BusSettings
from tests.unit.core.fake_bus import FakeBus

A, B = GatewayId("gw-a"), GatewayId("gw-b")
LINE, OTHER = Line(b"e.f"), Line(b"e.g")


def ref(name: str) -> SessionRef:
    return SessionRef(Tenant("default"), SessionId(name))


def appended(head: int, *gateways: GatewayId, line: Line = LINE) -> Appended:
    return Appended((), line, head, bool(gateways), gateways)


class Scene:
    def __init__(self) -> None:
        self.bus = FakeBus()
        self.notices = HeadsNotices(self.bus, BusSettings())

    def told(self) -> dict[GatewayId, list[HeadNotice]]:
        """What the next notice says to each gateway."""
        self.bus.published.clear()
        self.notices.tell()
        heads: dict[GatewayId, list[HeadNotice]] = {}
        for gateway, message in self.bus.published:
            heads.setdefault(gateway, []).extend(decode_heads(message))
        return heads


def test_a_session_is_in_two_successive_notices_and_then_in_none() -> None:
    it = Scene()
    it.notices.note(ref("chat"), appended(3, A))

    notice = {A: [HeadNotice(ref("chat").key, LINE, 3)]}
    assert [it.told(), it.told(), it.told()] == [notice, notice, {}]


def test_each_gateway_hears_of_what_was_published_to_it() -> None:
    it = Scene()
    it.notices.note(ref("chat-1"), appended(1, A))
    it.notices.note(ref("chat-2"), appended(2, A, B))
    it.notices.note(ref("chat-3"), appended(3))

    told = it.told()

    assert {gateway: [head.head for head in heads] for gateway, heads in told.items()} == {A: [1, 2], B: [2]}


def test_a_notice_names_the_newest_head_and_once() -> None:
    it = Scene()
    it.notices.note(ref("chat"), appended(3, A))
    it.told()
    it.notices.note(ref("chat"), appended(5, A))
    it.notices.note(ref("chat"), appended(4, A))  # answers may be noted out of order

    assert it.told() == {A: [HeadNotice(ref("chat").key, LINE, 5)]}


def test_another_line_replaces_a_higher_head_of_the_old_one() -> None:
    it = Scene()
    it.notices.note(ref("chat"), appended(9, A))
    it.notices.note(ref("chat"), appended(4, A, line=OTHER))

    assert it.told() == {A: [HeadNotice(ref("chat").key, OTHER, 4)]}


def test_nothing_touched_means_nothing_sent() -> None:
    it = Scene()

    assert it.told() == {}


@pytest.mark.parametrize(("count", "messages"), [(HEADS_A_NOTICE - 1, 1), (HEADS_A_NOTICE, 1), (HEADS_A_NOTICE + 1, 2)])
def test_a_notice_has_a_bounded_size(count: int, messages: int) -> None:
    it = Scene()
    for number in range(count):
        it.notices.note(ref(f"chat-{number}"), appended(number, A))

    told = it.told()

    assert len(told[A]) == count
    assert len(it.bus.published) == messages


def test_what_is_held_is_bounded_and_told_early_instead_of_dropped() -> None:
    it = Scene()
    for number in range(3 * MAX_HELD + 10):
        it.notices.note(ref(f"chat-{number}"), appended(number, A))

    told = {head.key for gateway, message in it.bus.published for head in decode_heads(message)}
    assert len(told) == 3 * MAX_HELD
    assert len(it.told()[A]) == MAX_HELD + 10


@pytest.mark.looptime
async def test_a_notice_goes_out_twice_a_second() -> None:
    it = Scene()
    owner = TaskOwner()
    owner.forever("notices", it.notices.run())
    for _ in range(10):
        it.notices.note(ref("chat"), appended(1, A))
        await asyncio.sleep(1)

    await owner.stop(1)

    assert len(it.bus.published) in (19, 20)
