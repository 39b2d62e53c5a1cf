"""Owned tasks: no end goes unnoticed, no task outlives its owner, clean-ups get their time."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.core.tasks import TaskOwner
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime
Logs = list[MutableMapping[str, Any]]


class Incidents(list[str]):
    def owner(self) -> TaskOwner:
        return TaskOwner(self.append)


@pytest.fixture
def logs() -> Iterator[Logs]:
    with capture_logs() as captured:
        yield captured


async def forever() -> None:
    await asyncio.Event().wait()


async def fails() -> None:
    raise ZeroDivisionError


async def returns() -> None:
    return


async def ends_by_a_foreign_cancellation() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


@pytest.mark.parametrize("end", [fails, returns, ends_by_a_foreign_cancellation])
async def test_the_end_of_a_task_that_must_run_for_ever_is_an_incident(
    end: Callable[[], Coroutine[Any, Any, None]], logs: Logs
) -> None:
    incidents = Incidents()
    owner = incidents.owner()

    owner.forever("bus", end())
    await settle()

    assert incidents == ["bus"]
    assert "task_ended_that_must_not" in [line["event"] for line in logs]


async def test_a_failure_is_logged_and_no_incident_for_a_task_that_may_end(logs: Logs) -> None:
    incidents = Incidents()
    owner = incidents.owner()

    owner.start("repair", fails())
    await settle()

    assert incidents == []
    assert [(line["event"], line["task"]) for line in logs] == [("task_failed", "repair")]
    assert not len(owner)


async def test_a_task_that_only_its_owner_knows_outlives_every_collection() -> None:
    """Failure catalogue A13: the loop itself holds tasks weakly, and what this one waits for holds only it."""
    owner = Incidents().owner()
    ended: list[str] = []

    async def waits_for_what_nobody_else_knows() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        finally:
            ended.append("left")

    owner.start("waits", waits_for_what_nobody_else_knows())
    await settle()
    gc.collect()
    await settle()

    assert ended == []
    await owner.stop(1)
    assert ended == ["cancelled", "left"]


async def test_tasks_that_run_for_ever_end_one_by_one_the_newest_first() -> None:
    ends: list[str] = []

    async def slowly(name: str, seconds: float) -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(seconds)
            ends.append(name)

    incidents = Incidents()
    owner = incidents.owner()
    for seconds, name in enumerate(("redis", "bus", "heartbeats")):
        owner.forever(name, slowly(name, seconds / 10))
    owner.start("repair", slowly("repair", 0.3))
    await settle()

    await owner.stop(5)

    assert ends == ["repair", "heartbeats", "bus", "redis"]
    assert incidents == []
    assert not len(owner)


async def test_clean_ups_end_while_what_they_need_still_runs() -> None:
    order: list[str] = []

    async def redis() -> None:
        try:
            await forever()
        finally:
            order.append("redis")

    async def release(name: str) -> None:
        await asyncio.sleep(0.5)
        order.append(name)

    async def socket() -> None:
        try:
            await forever()
        finally:
            owner.clean_up("release", release("late release"))

    owner = TaskOwner()
    owner.forever("redis", redis())
    owner.clean_up("release", release("release"))
    owner.start("socket", socket())
    await settle()

    await owner.stop(4)

    assert order == ["release", "late release", "redis"]


async def test_a_clean_up_that_hangs_does_not_hold_the_stop(logs: Logs) -> None:
    loop = asyncio.get_running_loop()
    owner = TaskOwner()
    owner.clean_up("release", forever())
    owner.forever("redis", forever())
    await settle()
    began = loop.time()

    await owner.stop(4)

    assert loop.time() - began == pytest.approx(2)
    assert not len(owner)
    assert logs == []


async def test_a_task_that_refuses_to_end_is_logged_and_does_not_hold_the_stop(logs: Logs) -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    loop = asyncio.get_running_loop()
    owner = TaskOwner()
    owner.start("stubborn", stubborn())
    owner.forever("redis", forever())
    await settle()
    began = loop.time()

    await owner.stop(4)

    assert loop.time() - began == pytest.approx(4)
    assert next(line["task"] for line in logs if line["event"] == "task_did_not_stop") == "stubborn"
    release.set()
    await settle()
    assert not len(owner)


async def test_what_is_started_after_the_stop_never_takes_a_step() -> None:
    steps: list[str] = []

    async def step() -> None:
        steps.append("step")

    incidents = Incidents()
    owner = incidents.owner()
    await owner.stop(1)

    owner.start("repair", step())
    owner.forever("bus", step())
    owner.clean_up("release", step())
    await settle()

    assert steps == []
    assert incidents == []
    assert not len(owner)


async def test_a_stop_from_within_an_owned_task_ends_the_others() -> None:
    owner = TaskOwner()

    async def stops() -> int:
        await owner.stop(1)
        return len(owner)

    owner.forever("redis", forever())
    stopping = owner.start("stop", stops())

    assert await stopping == 1


async def test_a_stop_that_is_cut_short_leaves_nothing_running() -> None:
    async def slowly() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(1)

    owner, other = TaskOwner(), TaskOwner()
    for name in ("redis", "bus"):
        owner.forever(name, slowly())
    await settle()
    stopping = other.start("stop", owner.stop(10))
    await asyncio.sleep(0.5)

    stopping.cancel()
    await asyncio.sleep(1.5)

    assert not len(owner)


async def test_waiting_for_clean_ups_is_bounded_and_sees_those_that_begin_meanwhile() -> None:
    owner = TaskOwner()

    async def release() -> None:
        await asyncio.sleep(1)
        if len(owner) < 3:
            owner.clean_up("release", asyncio.sleep(1))

    owner.clean_up("release", release())

    in_time = await owner.cleaned_up(0.5)
    at_last = await owner.cleaned_up(5)

    assert (in_time, at_last) == (False, True)
    assert not len(owner)
