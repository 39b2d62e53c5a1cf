"""What all recoveries hold together is bounded; more wait their turn."""

import asyncio

import pytest

from gateway.core.budget import ByteBudget
from tests.unit.core.stage import settle


async def _hold(budget: ByteBudget, size: int, until: asyncio.Event, held: list[int]) -> None:
    async with budget.share(size):
        held.append(size)
        await until.wait()


async def test_at_the_bound_the_next_one_waits_and_comes_in_order() -> None:
    budget, gates, held = ByteBudget(100), [asyncio.Event() for _ in range(4)], list[int]()
    async with asyncio.TaskGroup() as tasks:
        for size, gate in zip((50, 50, 51, 1), gates, strict=True):
            tasks.create_task(_hold(budget, size, gate, held))
        await settle()
        assert (held, budget.held_bytes, budget.waiting) == ([50, 50], 100, 2)

        gates[0].set()
        await settle()
        assert held == [50, 50]

        gates[1].set()
        await settle()
        assert held == [50, 50, 51, 1]
        gates[2].set()
        gates[3].set()

    assert (budget.held_bytes, budget.waiting) == (0, 0)


async def test_more_than_the_whole_is_granted_alone() -> None:
    budget = ByteBudget(10)

    async with budget.share(11):
        assert budget.held_bytes == 11


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    budget, gate, held = ByteBudget(10), asyncio.Event(), list[int]()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_hold(budget, 10, gate, held))
        waits = tasks.create_task(_hold(budget, 9, gate, held))
        follows = tasks.create_task(_hold(budget, 1, gate, held))
        await settle()
        waits.cancel()
        await settle()
        gate.set()
        await follows

    assert held == [10, 1]
    assert (budget.held_bytes, budget.waiting) == (0, 0)


async def test_a_grant_that_meets_a_cancellation_is_given_back() -> None:
    budget, gate, held = ByteBudget(10), asyncio.Event(), list[int]()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_hold(budget, 10, gate, held))
        waits = tasks.create_task(_hold(budget, 10, gate, held))
        await settle()
        gate.set()
        await asyncio.sleep(0)
        waits.cancel()

    assert (budget.held_bytes, budget.waiting) == (0, 0)


@pytest.mark.looptime
async def test_a_wait_with_an_end_raises_then_and_lets_those_behind_it_through() -> None:
    budget, gate, held = ByteBudget(10), asyncio.Event(), list[int]()
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_hold(budget, 5, gate, held))
        await settle()
        impatient = tasks.create_task(_give_up(budget, 6, loop.time() + 1))
        tasks.create_task(_hold(budget, 4, gate, held))
        await settle()
        assert (held, budget.waiting) == ([5], 2)

        assert await impatient
        await settle()
        assert held == [5, 4]
        gate.set()

    assert (budget.held_bytes, budget.waiting) == (0, 0)


async def _give_up(budget: ByteBudget, size: int, until: float) -> bool:
    try:
        await budget.take(size, until=until)
    except TimeoutError:
        return True
    return False


async def test_who_gave_up_behind_others_is_no_longer_counted() -> None:
    budget, gate, held = ByteBudget(10), asyncio.Event(), list[int]()
    async with asyncio.TaskGroup() as tasks:
        for size in (10, 10):
            tasks.create_task(_hold(budget, size, gate, held))
        await settle()
        now = asyncio.get_running_loop().time()

        assert await _give_up(budget, 1, now)
        assert (held, budget.waiting) == ([10], 1)
        gate.set()


async def test_who_gives_up_in_the_moment_of_a_give_back_is_passed_over() -> None:
    budget, gate, held = ByteBudget(10), asyncio.Event(), list[int]()
    await budget.take(10)
    async with asyncio.TaskGroup() as tasks:
        leaving = tasks.create_task(_hold(budget, 10, gate, held))
        staying = tasks.create_task(_hold(budget, 9, gate, held))
        await settle()

        leaving.cancel()
        budget.give_back(10)
        await asyncio.wait([leaving])
        await settle()

        assert leaving.cancelled()
        assert (held, budget.held_bytes, budget.waiting) == ([9], 9, 0)
        gate.set()
        await staying
