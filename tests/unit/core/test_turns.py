"""Turns: at most so many at once, who comes back before who is new, and nobody waits for ever."""

import asyncio
from typing import Any

import pytest

from gateway.core.turns import Turns
from gateway.domain.wire.errors import ErrorCode, RelayError


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def waiting(turns: Turns, name: str, order: list[str], *, is_return: bool) -> "asyncio.Task[None]":
    async def wait() -> None:
        await turns.take(is_return=is_return)
        order.append(name)

    task = asyncio.ensure_future(wait())
    await settle()
    return task  # type: ignore[return-value]


async def test_who_comes_back_goes_before_who_is_new() -> None:
    turns, order = Turns(1), list[str]()
    await turns.take(is_return=False)
    tasks = [
        await waiting(turns, name, order, is_return=name.startswith("back"))
        for name in ("new-1", "back-1", "new-2", "back-2")
    ]
    for _ in tasks:
        turns.give_back()
        await settle()

    assert order == ["back-1", "back-2", "new-1", "new-2"]


@pytest.mark.parametrize(("count", "are_let_in"), [(2, 2), (3, 3), (4, 3)])
async def test_no_more_than_the_limit_at_once(count: int, are_let_in: int) -> None:
    turns, order = Turns(3), list[str]()
    tasks = [await waiting(turns, str(number), order, is_return=False) for number in range(count)]

    assert len(order) == are_let_in
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.looptime
async def test_who_waits_too_long_is_told_to_go_elsewhere() -> None:
    turns = Turns(1)
    await turns.take(is_return=True)

    with pytest.raises(RelayError) as caught:
        await turns.take(is_return=True)

    assert caught.value.code is ErrorCode.BUSY
    assert turns.waiting == 0


async def test_who_gave_up_leaves_its_turn_to_the_next() -> None:
    turns, order = Turns(1), list[str]()
    await turns.take(is_return=False)
    gone = await waiting(turns, "gone", order, is_return=True)
    stays = await waiting(turns, "stays", order, is_return=False)
    gone.cancel()
    await settle()
    turns.give_back()
    await stays

    assert order == ["stays"]


async def test_a_turn_that_comes_with_the_cancellation_is_not_lost() -> None:
    turns, order = Turns(1), list[str]()
    await turns.take(is_return=False)
    gone = await waiting(turns, "gone", order, is_return=True)
    turns.give_back()
    gone.cancel()  # in the same turn of the loop
    result: list[Any] = await asyncio.gather(gone, return_exceptions=True)

    await turns.take(is_return=False)
    assert isinstance(result[0], asyncio.CancelledError)
