"""Between the network and the application: order, a bound, and whole segments when they are wanted."""

import asyncio

import pytest
from relayrouter.cursor import Cursor
from relayrouter.errors import AuthError
from relayrouter.handover import Handover, Over
from relayrouter.place import Step

from sdk.python.tests.frame_texts import delta, end, frame, message, start

pytestmark = pytest.mark.looptime


def handover(*, joins: bool = False, max_bytes: int = 1_000_000) -> Handover:
    return Handover(max_bytes, 0.5, lambda: joins, asyncio.get_running_loop().time)


def put(it: Handover, *raws: str) -> None:
    for raw in raws:
        one = frame(raw)
        it.put(Step(one, Cursor("e", "f", one.seq or 0)))


async def take(it: Handover, count: int) -> list[tuple[int | None, int | None, str]]:
    found = []
    for _ in range(count):
        item = await it.take()
        found.append((item.frame.first_seq, item.frame.seq, item.frame.text))
    return found


async def test_items_come_in_order_also_to_who_waits() -> None:
    """As they are, when nothing is to be joined."""
    it = handover()
    taking = asyncio.ensure_future(take(it, 2))
    await asyncio.sleep(1)
    put(it, delta(1, "a", 0), delta(2, "b", 1))

    assert await taking == [(1, 1, "a"), (2, 2, "b")]


async def test_a_full_buffer_makes_the_reader_wait() -> None:
    """Until something was taken."""
    raw = delta(1, "a", 0)
    it = handover(max_bytes=len(raw) + 128)
    await it.room()
    put(it, raw)
    assert it.is_full
    waiting = asyncio.ensure_future(it.room())
    await asyncio.sleep(1)
    assert not waiting.done()
    await it.take()

    await waiting


async def test_what_is_here_can_be_taken_after_the_end() -> None:
    """Then the reason of the end."""
    it = handover()
    put(it, delta(1, "a", 0))
    it.close(AuthError("no"))

    assert await take(it, 1) == [(1, 1, "a")]
    with pytest.raises(Over) as caught:
        await it.take()
    assert isinstance(caught.value.error, AuthError)


async def test_a_cancelled_take_loses_nothing() -> None:
    """An application may wait with a time limit."""
    it = handover()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await it.take()
    put(it, delta(1, "a", 0))

    assert await take(it, 1) == [(1, 1, "a")]


async def test_deltas_are_joined_up_to_the_end_of_a_sentence() -> None:
    """What follows it waits for its own end."""
    it = handover(joins=True)
    put(it, start(1), delta(2, "One ", 0), delta(3, "two. ", 4), delta(4, "Thr", 9))

    assert await take(it, 2) == [(1, 1, ""), (2, 3, "One two. ")]
    began = asyncio.get_running_loop().time()
    assert await take(it, 1) == [(4, 4, "Thr")]
    assert asyncio.get_running_loop().time() - began == pytest.approx(0.5)


async def test_a_segment_ends_where_something_else_follows() -> None:
    """Nothing waits behind it in vain."""
    it = handover(joins=True)
    put(it, delta(1, "a", 0), delta(2, "b", 1), end(3, "ab"), delta(4, "x", 0, run="q"), message(5, {"kind": "data"}))

    assert await take(it, 4) == [(1, 2, "ab"), (3, 3, ""), (4, 4, "x"), (5, 5, "")]


async def test_an_interrupted_run_is_skipped_in_the_buffer_and_after_it() -> None:
    """After `accepted` nothing of it is handed out (A20); another life of the run is."""
    it = handover()
    put(it, delta(1, "a", 0), delta(2, "other", 0, run="q"))
    it.skip("r")
    put(it, delta(3, "b", 1), end(4, "ab"), start(5), delta(6, "new", 0))
    items = [await it.take() for _ in range(6)]

    assert [item.is_skipped for item in items] == [True, False, True, False, False, False]


async def test_the_age_of_the_oldest_item_is_how_far_behind_the_application_is() -> None:
    """It is what degradation goes by."""
    it = handover()
    assert it.lag_seconds() == 0.0
    put(it, delta(1, "a", 0))
    await asyncio.sleep(2.5)

    assert it.lag_seconds() == pytest.approx(2.5)
