"""The index of deadlines: noted before the state, moved or removed only as read, never lost (design.md 6)."""

from collections.abc import AsyncIterator

import pytest

from gateway.adapters.redis_store.deadlines import due_key, shard_of
from gateway.ports import Due
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import ExchangeStage, exchanging
from tests.integration.store.stage import keys_without_end


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    shared_server.admin.flushall()
    async with exchanging(shared_server.address, shared_server.admin) as stage:
        yield stage
    assert keys_without_end(shared_server.admin) == []


def shard(stage: ExchangeStage) -> int:
    return shard_of(stage.ref.key)


def score(stage: ExchangeStage) -> float | None:
    found: float | None = stage.admin.zscore(due_key(shard(stage)), stage.ref.key)
    return found


def let_be_due(stage: ExchangeStage, mark: str = "") -> Due:
    """Its deadline was a second ago."""
    late = f"{stage.server_ms() - 1000}{mark}"
    stage.admin.zadd(due_key(shard(stage)), {stage.ref.key: late})
    stage.admin.expire(due_key(shard(stage)), 3600)
    return Due(stage.ref.key, shard(stage), late, 1000)


async def test_a_note_is_due_after_its_time_and_not_before(stage: ExchangeStage) -> None:
    noted = await stage.deadlines.note(stage.ref, 60_000)

    assert abs(noted - stage.server_ms()) < 2_000
    assert score(stage) == noted + 60_000
    assert await stage.deadlines.due(shard(stage), 10) == []
    let_be_due(stage)
    [due] = await stage.deadlines.due(shard(stage), 10)
    assert (due.session, due.shard) == (stage.ref.key, shard(stage))
    assert 1000 <= due.overdue_ms < 3000


async def test_the_earliest_deadline_stays(stage: ExchangeStage) -> None:
    first = await stage.deadlines.note(stage.ref, 30_000)

    await stage.deadlines.note(stage.ref, 60_000)
    assert score(stage) == first + 30_000

    third = await stage.deadlines.note(stage.ref, 5_000)
    assert score(stage) == third + 5_000


async def test_a_note_is_there_again_after_the_index_was_lost(stage: ExchangeStage) -> None:
    """FLUSHALL: nothing that a gateway remembers may stand for an entry."""
    await stage.deadlines.note(stage.ref, 30_000)
    stage.admin.delete(due_key(shard(stage)))

    await stage.deadlines.note(stage.ref, 30_000)

    assert score(stage) is not None


async def test_an_entry_is_settled_only_as_it_was_read(stage: ExchangeStage) -> None:
    due = let_be_due(stage)
    await stage.deadlines.note(stage.ref, 200)  # by another gateway, whose state is not there yet
    read_now = score(stage)

    await stage.deadlines.settle(due, None)
    await stage.deadlines.settle(due, 60_000)

    assert read_now is not None
    assert read_now < float(due.score)
    assert score(stage) == read_now


async def test_what_is_not_found_is_kept_for_a_minute_and_then_goes(stage: ExchangeStage) -> None:
    await stage.deadlines.settle(let_be_due(stage), None)
    kept = score(stage)
    assert kept is not None
    assert kept % 1 == 0.5
    assert 58_000 < kept - stage.server_ms() <= 60_001

    await stage.deadlines.settle(let_be_due(stage, ".5"), None)
    assert score(stage) is None


async def test_a_first_look_moves_no_further_than_a_note_lives(stage: ExchangeStage) -> None:
    await stage.deadlines.settle(let_be_due(stage), 500_000)
    moved = score(stage)
    assert moved is not None
    assert 18_000 < moved - stage.server_ms() <= 20_001

    await stage.deadlines.settle(let_be_due(stage, ".5"), 500_000)
    moved = score(stage)
    assert moved is not None
    assert 498_000 < moved - stage.server_ms() <= 500_000


async def test_a_near_deadline_is_kept_exactly(stage: ExchangeStage) -> None:
    await stage.deadlines.settle(let_be_due(stage), 1_500)

    moved = score(stage)
    assert moved is not None
    assert moved % 1 == 0
    assert 0 < moved - stage.server_ms() <= 1_500


async def test_a_note_takes_the_mark_of_a_first_look_off(stage: ExchangeStage) -> None:
    await stage.deadlines.settle(let_be_due(stage), None)
    marked = score(stage)

    await stage.deadlines.note(stage.ref, 100_000)

    assert marked is not None
    assert score(stage) == marked - 0.5


async def test_two_sweepers_settle_once(stage: ExchangeStage) -> None:
    let_be_due(stage, ".5")
    [one], [two] = await stage.deadlines.due(shard(stage), 10), await stage.deadlines.due(shard(stage), 10)

    await stage.deadlines.settle(one, 5_000)
    moved = score(stage)
    await stage.deadlines.settle(two, None)

    assert score(stage) == moved


async def test_overdue_entries_come_oldest_first_and_bounded(stage: ExchangeStage) -> None:
    key = due_key(3)
    now = stage.server_ms()
    stage.admin.zadd(key, {f"s{age}": now - age for age in (10, 3000, 200)})
    stage.admin.expire(key, 60)

    found = await stage.deadlines.due(3, 2)

    assert [due.session for due in found] == [b"s3000", b"s200"]
