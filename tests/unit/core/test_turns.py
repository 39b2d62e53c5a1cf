"""Turns: at most so many at once, no kind shuts out another, and nobody waits for ever or for nothing."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from gateway.core.budget import ByteBudget
from gateway.core.gate import refused_by_kind
from gateway.core.turns import AFTER_MS, ORDER, WAIT_SECONDS, Turns
from gateway.domain.admission.kinds import Kind
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from tests.unit.core.stage import settle

PAGE = 10


class Scene:
    """Clients by name: `back-1` comes back, `poll-1` goes on polling, all others are new."""

    def __init__(self, most: int, *, pages: int = 1000) -> None:
        self.measures = Measures()
        self.memory = ByteBudget(pages * PAGE)
        self.turns = Turns(most, self.memory, PAGE, refused_by_kind(self.measures), random.Random(1))
        self.order: list[str] = []
        self.gone: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.Event] = {}

    def _check_present(self, name: str) -> None:
        if name in self.gone:
            raise EOFError

    async def _connect(self, name: str) -> None:
        kind = {"back": Kind.RESUME, "poll": Kind.READ}.get(name.partition("-")[0], Kind.NEW)
        async with self.turns.turn(kind, lambda: self._check_present(name)):
            self.order.append(name)
            await self._ends[name].wait()

    async def come(self, *names: str) -> None:
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._connect(name))
        await settle()

    async def end(self, *names: str) -> None:
        """In this order, each once its turn has come and all that follows from it has happened."""
        for name in names:
            self._ends[name].set()
            await settle()

    def cancel(self, name: str) -> None:
        self._tasks[name].cancel()

    async def outcome(self, name: str) -> BaseException | None:
        (result,) = await asyncio.gather(self._tasks[name], return_exceptions=True)
        return result

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        assert (self.turns.taken, self.turns.waiting, self.memory.held_bytes) == (0, 0, 0)


async def serve_all(scene: Scene) -> list[str]:
    """One after the other, as their turns come."""
    served = 0
    while served < len(scene.order):
        await scene.end(scene.order[served])
        served += 1
    return scene.order


async def test_who_comes_back_goes_before_who_is_new_or_polls() -> None:
    scene = Scene(1)
    await scene.come("first", "new-1", "poll-1", "back-1", "new-2", "back-2")

    assert await serve_all(scene) == ["first", "back-1", "back-2", "new-1", "poll-1", "new-2"]
    await scene.close()


@pytest.mark.parametrize(
    ("one", "many"), [("new", ["back", "poll"]), ("poll", ["back", "new"]), ("back", ["new", "poll"])]
)
async def test_a_flood_of_others_takes_no_more_than_seven_turns_before_one(one: str, many: list[str]) -> None:
    """Wherever the round stands when it comes."""
    for served_before in range(2 * len(ORDER)):
        scene = Scene(1)
        await scene.come("first", *(f"{kind}-{number}" for kind in many for number in range(40)))
        for _ in range(served_before):
            await scene.end(scene.order[-1])
        await scene.come(f"{one}-0")
        for _ in range(8):
            await scene.end(scene.order[-1])

        assert f"{one}-0" in scene.order
        await scene.close()


async def test_polls_have_no_turn_before_new_ones() -> None:
    scene = Scene(1)
    await scene.come("first", *(f"poll-{number}" for number in range(4)), *(f"new-{number}" for number in range(4)))
    order = await serve_all(scene)

    assert [name.partition("-")[0] for name in order[1:]] == ["new", "poll"] * 4
    await scene.close()


@pytest.mark.parametrize(("count", "are_let_in"), [(2, 2), (3, 3), (4, 3)])
async def test_no_more_than_the_limit_at_once(count: int, are_let_in: int) -> None:
    scene = Scene(3)
    await scene.come(*map(str, range(count)))

    assert (len(scene.order), scene.turns.taken, scene.turns.waiting) == (are_let_in, are_let_in, count - are_let_in)
    await scene.close()


@pytest.mark.looptime
async def test_who_waits_too_long_for_a_place_is_told_when_to_come_back() -> None:
    scene = Scene(1)
    await scene.come("first", "back-1")
    refusal = await scene.outcome("back-1")

    assert isinstance(refusal, RelayError)
    assert (refusal.code, refusal.details) == (ErrorCode.BUSY, {"reason": "handshakes"})
    assert scene.measures.refused_resumes == {"handshakes": 1}
    assert scene.turns.waiting == 0
    await scene.close()


@pytest.mark.looptime
async def test_those_that_give_up_together_are_spread() -> None:
    """They came in one moment, and each is told a time of its own, which the border leaves as it is."""
    scene = Scene(1)
    names = [f"new-{number}" for number in range(100)]
    await scene.come("first", *names)
    refusals = [await scene.outcome(name) for name in names]
    times = [refusal.after_ms or 0 for refusal in refusals if isinstance(refusal, RelayError) and refusal.is_spread]

    assert len(times) == 100
    assert all(AFTER_MS[0] <= after_ms <= AFTER_MS[1] for after_ms in times)
    assert len(set(times)) > 80
    await scene.close()


@pytest.mark.looptime
async def test_the_wait_for_memory_ends_and_keeps_neither_place_nor_memory() -> None:
    scene = Scene(2, pages=1)
    await scene.come("first", "new-1")
    assert (scene.turns.taken, scene.turns.waiting) == (2, 1)
    refusal = await scene.outcome("new-1")

    assert isinstance(refusal, RelayError)
    assert (refusal.code, refusal.details) == (ErrorCode.BUSY, {"reason": "recoveries"})
    assert AFTER_MS[0] <= (refusal.after_ms or 0) <= AFTER_MS[1]
    assert scene.measures.refused_new == {"recoveries": 1}
    assert (scene.turns.taken, scene.turns.waiting, scene.memory.held_bytes, scene.memory.waiting) == (1, 0, PAGE, 0)
    await scene.close()


@pytest.mark.looptime
async def test_place_and_memory_have_one_deadline() -> None:
    scene, loop = Scene(1, pages=1), asyncio.get_running_loop()
    async with scene.memory.share(PAGE):
        place = scene.turns._take_place(Kind.NEW, loop.time() + WAIT_SECONDS)
        await place
        began = loop.time()
        await scene.come("new-1")
        await asyncio.sleep(WAIT_SECONDS - 1)
        scene.turns._give_back()
        refusal = await scene.outcome("new-1")

        assert isinstance(refusal, RelayError)
        assert refusal.details == {"reason": "recoveries"}
        assert loop.time() - began == pytest.approx(WAIT_SECONDS, abs=0.1)
    await scene.close()


async def test_who_gave_up_leaves_its_turn_to_the_next() -> None:
    scene = Scene(1)
    await scene.come("first", "back-1", "new-1")
    scene.cancel("back-1")
    await settle()
    await scene.end("first")

    assert scene.order == ["first", "new-1"]
    await scene.close()


async def test_a_turn_that_comes_with_the_cancellation_is_not_lost() -> None:
    scene = Scene(1)
    await scene.come("first", "back-1")
    scene._ends["first"].set()
    while scene.turns._queues[Kind.RESUME]:
        await asyncio.sleep(0)
    scene.cancel("back-1")  # in the same turn of the loop
    result: Any = await scene.outcome("back-1")
    await scene.come("new-1")

    assert isinstance(result, asyncio.CancelledError)
    assert scene.order == ["first", "new-1"]
    await scene.close()


async def test_who_left_while_it_waited_has_no_turn_and_the_next_has_it_at_once() -> None:
    scene = Scene(1)
    await scene.come("first", "back-1", "back-2", "new-1")
    scene.gone |= {"back-1", "back-2"}
    await scene.end("first")

    assert scene.order == ["first", "new-1"]
    assert isinstance(await scene.outcome("back-1"), EOFError)
    await scene.close()


async def test_who_left_while_it_waited_for_a_place_does_not_wait_for_memory() -> None:
    scene = Scene(1, pages=1)
    await scene.come("first", "new-1")
    scene.gone.add("new-1")
    replay = asyncio.create_task(scene.memory.take(PAGE))  # before new-1 in the queue for memory
    await settle()
    await scene.end("first")

    assert (replay.done(), scene.turns.taken) == (True, 0)
    scene.memory.give_back(PAGE)
    await scene.close()


async def test_who_left_while_it_waited_for_memory_gives_both_back() -> None:
    scene = Scene(2, pages=1)
    await scene.come("first", "new-1", "new-2")
    scene.gone.add("new-1")
    await scene.end("first")

    assert scene.order == ["first", "new-2"]
    await scene.close()


async def test_a_timeout_inside_the_turn_is_not_taken_for_the_end_of_the_wait() -> None:
    scene = Scene(1)
    with suppress(TimeoutError):
        async with scene.turns.turn(Kind.NEW):
            raise TimeoutError

    assert not scene.measures.refused_new
    await scene.close()
