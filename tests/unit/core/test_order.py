"""Timers of reorder windows, and notes of deadlines that appends need."""

import asyncio
from typing import Any

import pytest

from gateway.core.order import Windows
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, Tenant
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    ItemResult,
    Order,
    ProducerRef,
    StoreUnavailable,
)
from tests.unit.core.fake_order import FakeDeadlines, FakeSweeps, noted, windows

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("t"), SessionId("s"))
STALE = AppendRefused(AppendRefusal.DUE_STALE)
DONE = Appended((ItemResult(1, False),), b"e.f", 1, False, ())  # type: ignore[arg-type]


def make(**more: Any) -> tuple[Windows, FakeSweeps, TaskOwner]:
    sweeps, owner = FakeSweeps(), TaskOwner()
    sweeps.clock = asyncio.get_running_loop().time
    return windows(sweeps, owner), sweeps, owner


async def test_a_window_is_released_when_its_time_is_over() -> None:
    made, sweeps, owner = make()
    began = sweeps.clock()

    made.release_in(REF, 150)
    await asyncio.sleep(1)

    assert [at - began for at in sweeps.swept_at] == [pytest.approx(0.155, abs=0.001)]
    assert (len(made), len(owner)) == (0, 0)


async def test_a_timer_looks_again_as_long_as_something_waits() -> None:
    made, sweeps, _ = make()
    sweeps.answers = [80, 200, 30_000]
    began = sweeps.clock()

    made.release_in(REF, 100)
    await asyncio.sleep(2)

    times = [round(at - began, 3) for at in sweeps.swept_at]
    assert times == [0.105, 0.19, 0.395]


async def test_a_session_has_one_timer() -> None:
    made, sweeps, owner = make()
    for wait_ms in (200, 150, 100):
        made.release_in(REF, wait_ms)
        assert len(owner) == 1
    await asyncio.sleep(1)

    assert len(sweeps.swept_at) == 1


async def test_when_redis_is_away_the_sweep_of_deadlines_does_it() -> None:
    made, sweeps, _ = make()
    sweeps.is_away = True

    made.release_in(REF, 100)
    await asyncio.sleep(1)
    sweeps.is_away = False
    made.release_in(REF, 100)
    await asyncio.sleep(1)

    assert len(sweeps.swept_at) == 2
    assert len(made) == 0


def request(**more: Any) -> AppendRequest:
    return AppendRequest(REF, (make_item({"kind": "data"}),), ProducerRef(ProducerName("p"), 1), 1, **more)


class Store:
    """Answers stale until a note of at least `wants` is there."""

    def __init__(self, wants: int | None) -> None:
        self.wants = wants
        self.asked: list[int | None] = []

    async def append(self, asked: AppendRequest) -> AppendOutcome:
        self.asked.append(asked.due_ms)
        return DONE if self.wants is None or (asked.due_ms or 0) >= self.wants else STALE


@pytest.mark.parametrize(
    ("fields", "wants", "notes", "asked"),
    [
        ({}, None, [], [None]),
        ({"order": Order.REORDER}, None, [], [None]),
        ({"order": Order.REORDER}, 1, [200], [None, 1]),
        ({}, 1, [30_000], [None, 1]),
        ({"kept_ms": 5_000}, 1, [5_000], [1]),
        ({"kept_ms": 90_000}, 2, [30_000, 30_000], [1, 2]),
    ],
)
async def test_a_deadline_is_noted_when_the_script_asks_for_it(
    fields: dict[str, Any], wants: int | None, notes: list[int], asked: list[int | None]
) -> None:
    deadlines, store = FakeDeadlines(), Store(wants)

    outcome = await noted(deadlines).attempt(request(**fields), store.append)

    assert outcome == DONE
    assert deadlines.notes == notes
    assert store.asked == asked


async def test_notes_that_are_always_too_old_end_the_attempt() -> None:
    deadlines, store = FakeDeadlines(), Store(99)

    assert await noted(deadlines).attempt(request(), store.append) == STALE
    assert len(deadlines.notes) == 3


async def test_a_note_without_an_answer_leaves_the_append_known_as_not_written() -> None:
    deadlines = FakeDeadlines()
    deadlines.failures = 1

    with pytest.raises(StoreUnavailable) as caught:
        await noted(deadlines).attempt(request(kept_ms=1_000), Store(1).append)

    assert not caught.value.outcome_unknown
