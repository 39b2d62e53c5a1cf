"""Kept pushes: for those who connect later, bounded, and gone when their time is over (C4, G4)."""

from collections.abc import AsyncIterator

import pytest

from gateway.domain.wire.ids import ProducerName
from gateway.ports import Appended, AppendRefusal, AppendRefused, Expected, ItemResult
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import ExchangeStage, exchanging
from tests.integration.store.stage import OWN, data, delta, keys_without_end


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    async with exchanging(shared_server.address, shared_server.admin) as stage:
        yield stage
    assert keys_without_end(shared_server.admin) == []


async def keep(stage: ExchangeStage, *texts: str, number: int, kept_ms: int = 60_000, **more: object) -> Appended:
    return await stage.offered(*texts, number=number, producer=OWN, order=None, kept_ms=kept_ms, **more)


def kept(stage: ExchangeStage) -> dict[int, str]:
    """Seq -> frame."""
    found = {}
    for field, value in stage.admin.hgetall(stage.key("kept")).items():
        if field.startswith("k:"):
            found[int(field[2:])] = value.partition(" ")[2]
    return found


def expire(stage: ExchangeStage, *seqs: int) -> None:
    for seq in seqs:
        frame = stage.admin.hget(stage.key("kept"), f"k:{seq}").partition(" ")[2]
        stage.admin.hset(stage.key("kept"), f"k:{seq}", f"{stage.server_ms() - 1} {frame}")


async def test_a_kept_push_is_in_the_log_and_kept_beside_it(stage: ExchangeStage) -> None:
    before = stage.server_ms()
    pushed = await keep(stage, "a", "b", number=1)

    assert pushed.results == (ItemResult(1, False), ItemResult(2, False))
    assert pushed.kept_until_ms is not None
    assert 0 <= pushed.kept_until_ms - before - 60_000 < 5_000
    assert stage.texts() == ["a", "b"]
    logged = [fields["f"] for _, fields in stage.admin.xrange(stage.key("log"))]
    assert [frame for _, frame in sorted(kept(stage).items())] == logged


async def test_a_repeat_tells_until_when_it_is_kept(stage: ExchangeStage) -> None:
    first = await keep(stage, "a", number=1, idempotency_key="k1")
    repeat = await keep(stage, "a", number=2, idempotency_key="k1", kept_ms=120_000)

    assert repeat.results == (ItemResult(1, True),)
    assert repeat.kept_until_ms == first.kept_until_ms
    assert stage.texts() == ["a"]
    expire(stage, 1)
    await stage.exchange.sweep(stage.ref)
    assert (await keep(stage, "a", number=3, idempotency_key="k1")).kept_until_ms is None


async def test_numbers_of_kept_pushes_follow_the_strict_rule(stage: ExchangeStage) -> None:
    await keep(stage, "a", number=1)

    assert await stage.offer(data(), number=3, producer=OWN, order=None, kept_ms=1000) == Expected(2)
    assert (await keep(stage, "a", number=1)).results == (ItemResult(1, True),)
    await stage.put(data("b"), number=2)
    assert (await keep(stage, "c", number=3)).results == (ItemResult(3, False),)
    unknown = OWN._replace(name=ProducerName("nobody"), registers=False)
    assert await stage.offer(data(), number=1, producer=unknown, order=None, kept_ms=1) == AppendRefused(
        AppendRefusal.PRODUCER_UNKNOWN
    )


async def test_without_a_note_nothing_is_kept(stage: ExchangeStage) -> None:
    refused = await stage.offer(data(), number=1, producer=OWN, order=None, kept_ms=1000, is_noted=False)

    assert refused == AppendRefused(AppendRefusal.DUE_STALE)
    assert stage.texts() == []


async def test_what_expired_goes_and_cannot_be_rebuilt_any_more(stage: ExchangeStage) -> None:
    await keep(stage, "a", number=1)
    await keep(stage, "b", number=2)
    assert (await stage.exchange.sweep(stage.ref)).events == ()
    expire(stage, 1)

    swept = await stage.exchange.sweep(stage.ref)

    assert swept.events == ("kept",)
    assert list(kept(stage)) == [2]
    assert int(stage.admin.hget(stage.key("meta"), "void")) == 1
    assert swept.next_in_ms is not None
    assert 50_000 < swept.next_in_ms <= 60_000


@pytest.mark.parametrize(("count", "first"), [(63, 1), (64, 1), (65, 2)])
async def test_so_many_are_kept(stage: ExchangeStage, count: int, first: int) -> None:
    await keep(stage, *[str(n) for n in range(1, count + 1)], number=1)

    assert min(kept(stage)) == first
    assert int(stage.admin.hget(stage.key("meta"), "void") or 0) == first - 1


async def test_so_many_bytes_are_kept(stage: ExchangeStage) -> None:
    for number in range(1, 7):
        await keep(stage, "x" * 50_000, number=number)

    assert sorted(kept(stage)) == [2, 3, 4, 5, 6]


async def test_the_session_outlives_what_it_keeps(stage: ExchangeStage) -> None:
    week_ms = 7 * 86_400_000
    await keep(stage, "a", number=1, kept_ms=week_ms)

    for part in ("meta", "kept"):
        assert stage.admin.pttl(stage.key(part)) > week_ms + 86_000_000, "also when no gateway is there to sweep it"


async def test_what_is_known_of_clients_is_renewed_by_itself(stage: ExchangeStage) -> None:
    """Meta has a week of its own already: its time says nothing of theirs."""
    claimed = await stage.claimed()
    await keep(stage, "a", number=1, kept_ms=7 * 86_400_000)
    stage.admin.pexpire(stage.key("clients"), 1_000)

    await stage.renew(stage.renew_client(claimed))

    assert stage.admin.pttl(stage.key("clients")) > 86_000_000


async def test_another_client_does_not_shorten_what_is_known_of_the_first_one(stage: ExchangeStage) -> None:
    week_ms = 7 * 86_400_000
    await stage.claimed()
    await keep(stage, "a", number=1, kept_ms=week_ms)

    await stage.claimed(client="tablet", connection="c2")

    assert stage.admin.pttl(stage.key("clients")) > week_ms


async def test_a_kept_delta_of_a_run_is_part_of_its_text(stage: ExchangeStage) -> None:
    first = await stage.offer(delta("r1", "ab"), number=1, producer=OWN, order=None, kept_ms=1000)
    await stage.put(delta("r1", "cd"), number=2)

    assert isinstance(first, Appended)
    assert [payload["at"] for payload in stage.payloads()] == [0, 2]
