"""Turns by lane: the higher one first, none for ever last, none lost when somebody gives up."""

import asyncio

from gateway.core.routing.lane_turns import OLDEST_EVERY, LaneTurns


async def order_of(ranks: list[int], count: int = 1) -> list[int]:
    """In which order those who wait get their turn: their places."""
    turns = LaneTurns(count)
    got: list[int] = []
    may_end = asyncio.Event()

    async def hold() -> None:
        async with turns.turn(0):
            await may_end.wait()

    async def wait(place: int, rank: int) -> None:
        async with turns.turn(rank):
            got.append(place)

    holding = [asyncio.create_task(hold()) for _ in range(count)]
    await asyncio.sleep(0)
    waiting = []
    for place, rank in enumerate(ranks):
        waiting.append(asyncio.create_task(wait(place, rank)))
        await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*holding, *waiting)
    return got


async def test_the_higher_lane_goes_first_and_within_it_who_came_first() -> None:
    assert [1, 3, 2, 0] == await order_of([3, 0, 1, 0])


async def test_one_turn_in_eight_goes_to_who_has_waited_longest() -> None:
    got = await order_of([3, *[0] * 20])

    assert OLDEST_EVERY - 1 == got.index(0)


async def test_who_gives_up_takes_no_turn_with_it() -> None:
    turns = LaneTurns(1)
    async with turns.turn(0):

        async def wait() -> None:
            async with turns.turn(1):
                raise AssertionError("it was given up")

        leaving = asyncio.create_task(wait())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    async with turns.turn(3):
        waiting = turns.waiting

    assert 0 == waiting


async def test_a_turn_that_came_in_the_moment_of_giving_up_goes_to_the_next() -> None:
    turns = LaneTurns(1)
    first = turns.turn(0)
    await first.__aenter__()
    leaving = asyncio.create_task(turns.turn(0).__aenter__())
    next_one = asyncio.create_task(turns.turn(1).__aenter__())
    await asyncio.sleep(0)
    await first.__aexit__(None, None, None)  # the turn is `leaving`'s now, which does not know it yet
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)

    await asyncio.wait_for(next_one, 5)
