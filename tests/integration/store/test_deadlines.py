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
    stage.now += 11

    await stage.deadlines.note(stage.ref, 60_000)
    assert score(stage) == first + 30_000

    third = await stage.deadlines.note(stage.ref, 5_000)
    assert score(stage) == third + 5_000


async def test_a_note_is_cached_while_its_deadline_is_ahead_and_early_enough(stage: ExchangeStage) -> None:
    first = await stage.deadlines.note(stage.ref, 5_000)
    stage.admin.delete(due_key(shard(stage)))  # shows who asked Redis

    stage.now += 4
    assert await stage.deadlines.note(stage.ref, 5_000) == first
    assert await stage.deadlines.note(stage.ref, 1_100) == first
    assert score(stage) is None
    await stage.deadlines.note(stage.ref, 900)  # earlier than what is noted
    assert score(stage) is not None


@pytest.mark.parametrize(("after_seconds", "is_cached"), [(9.9, True), (10.1, False)])
async def test_a_note_is_cached_for_ten_seconds(stage: ExchangeStage, after_seconds: float, is_cached: bool) -> None:
    await stage.deadlines.note(stage.ref, 60_000)
    stage.admin.delete(due_key(shard(stage)))

    stage.now += after_seconds
    await stage.deadlines.note(stage.ref, 60_000)

    assert (score(stage) is None) == is_cached


async def test_a_passed_deadline_is_noted_anew(stage: ExchangeStage) -> None:
    """Its entry may have been swept and moved meanwhile."""
    await stage.deadlines.note(stage.ref, 200)
    stage.admin.delete(due_key(shard(stage)))

    stage.now += 0.3
    await stage.deadlines.note(stage.ref, 200)

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
