"""Waiting for a notice: woken by it, never faster than 5 s without one, over at the deadline."""

import asyncio

import pytest

from gateway.core.waits import LOOK_SECONDS, Waits

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_notice_wakes_those_who_wait_for_that_thing_and_nobody_else() -> None:
    waits: Waits[str] = Waits()
    woken: list[str] = []

    async def wait_for(thing: str) -> None:
        with waits.waiting(thing, now, 4) as wait:
            await wait.next_look()
            woken.append(f"{thing} after {now():.0f}")

    async with asyncio.TaskGroup() as group:
        for thing in ("a", "a", "b"):
            group.create_task(wait_for(thing))
        await asyncio.sleep(1)
        waits.notify("a")

    assert ["a after 1", "a after 1", "b after 4"] == woken
    assert 0 == len(waits)


async def test_a_notice_between_the_question_and_the_wait_counts() -> None:
    waits: Waits[str] = Waits()
    with waits.waiting("a", now, 60) as wait:
        waits.notify("a")

        assert await wait.next_look()
    assert 0 == now()


async def test_a_notice_is_good_for_one_look() -> None:
    waits: Waits[str] = Waits()
    with waits.waiting("a", now, 60) as wait:
        waits.notify("a")
        await wait.next_look()
        await wait.next_look()

    assert LOOK_SECONDS == now()


async def test_without_a_notice_it_looks_every_five_seconds_until_the_deadline() -> None:
    looks = []
    with Waits[str]().waiting("a", now, 12) as wait:
        while await wait.next_look():
            looks.append(now())

        assert wait.is_over
    assert [LOOK_SECONDS, 2 * LOOK_SECONDS, 12] == looks


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    waits: Waits[str] = Waits()

    async def wait() -> None:
        with waits.waiting("a", now, 60) as wait:
            await wait.next_look()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert 0 == len(waits)
