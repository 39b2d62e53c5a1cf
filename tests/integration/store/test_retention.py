"""What the log keeps, and that whatever left it is known (C6, R21, R23)."""

import asyncio
from pathlib import Path

import pytest

from gateway.domain.wire.entry import Item
from gateway.settings import RetentionSettings
from tests.integration.resp.servers import Server
from tests.integration.store.stage import Stage, data, delta, run_end, staged

KIB = 1024
SMALL = RetentionSettings(max_messages=100, max_bytes=64 * KIB)


async def lost(stage: Stage) -> int:
    info = await stage.store.info(stage.ref)
    assert info is not None
    assert info.first_seq == info.log.lost + 1
    return info.log.lost


@pytest.mark.parametrize(("messages", "gone"), [(999, 0), (1000, 0), (1001, 1), (1300, 300)])
async def test_1000_messages_are_kept(stage: Stage, messages: int, gone: int) -> None:
    await stage.fill(messages)

    assert await stage.seqs() == list(range(gone + 1, messages + 1))
    assert await lost(stage) == gone
    assert stage.admin.xlen(stage.key("log")) == messages - gone


async def test_a_smaller_limit_takes_effect_by_16_evictions_an_append(shared_server: Server) -> None:
    async with staged(shared_server.address, shared_server.admin) as before:
        await before.fill(140)
    async with staged(shared_server.address, shared_server.admin, retention=SMALL) as stage:
        stage.ref, stage.numbers = before.ref, before.numbers
        lengths = []
        for _ in range(5):
            await stage.put(data())
            lengths.append(len(await stage.seqs()))

    assert lengths == [125, 110, 100, 100, 100]


@pytest.mark.parametrize(("count", "kept"), [(64, 64), (65, 65), (66, 65), (70, 65)])
async def test_bytes_are_kept_up_to_the_limit_and_one_message(shared_server: Server, count: int, kept: int) -> None:
    """Frames of exactly 1 KiB, 64 KiB allowed."""
    async with staged(shared_server.address, shared_server.admin, retention=SMALL) as stage:
        for _ in range(count):
            await stage.put(await _one_kib(stage))

        info = await stage.store.info(stage.ref)
        assert info is not None
        assert (len(await stage.seqs()), info.retained_bytes) == (kept, kept * KIB)
        assert await lost(stage) == count - kept


async def test_one_big_message_evicts_no_more_than_16(shared_server: Server) -> None:
    async with staged(shared_server.address, shared_server.admin, retention=SMALL) as stage:
        for _ in range(65):
            await stage.put(await _one_kib(stage))
        await stage.put(data("x" * 60 * KIB))  # nothing more to evict: all before it fits
        await stage.put(data("y"))

        assert await lost(stage) == 1 + 16

        for _ in range(4):
            await stage.put(data("y"))
        info = await stage.store.info(stage.ref)
        assert info is not None
        assert info.retained_bytes <= 64 * KIB + 64 * KIB
        assert await lost(stage) == 65 - 3, "the big one and the three that fit beside it"


async def test_the_byte_account_is_exact_after_many_evictions_by_count(shared_server: Server) -> None:
    async with staged(shared_server.address, shared_server.admin, retention=SMALL) as stage:
        for size in (10, 300, 2_000, 50, 900):
            for _ in range(40):
                await stage.put(data("z" * size))

        page = await stage.store.page(stage.ref, 0, 1 << 20)
        info = await stage.store.info(stage.ref)

        assert page is not None
        assert info is not None
        frames = [len(entry.frame) for entry in page.entries]
        assert info.retained_bytes == sum(frames)
        assert sum(frames[:-1]) <= 64 * KIB
        assert len(frames) <= 100


async def test_an_expired_log_is_lost_and_its_bytes_are_free(stage: Stage) -> None:
    await stage.fill(10)
    stage.admin.delete(stage.key("log"))

    assert await lost(stage) == 10
    assert await stage.seqs() == []
    await stage.put(data())
    info = await stage.store.info(stage.ref)
    assert info is not None
    assert (await stage.seqs(), info.log.lost, info.first_seq) == ([11], 10, 11)
    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    assert info.retained_bytes == len(page.entries[0].frame)
    assert stage.admin.pttl(stage.key("log")) > 300_000


async def test_numbers_begin_again_under_a_new_epoch_when_meta_is_gone(stage: Stage) -> None:
    """R18: the log of the old life goes, two entries never share a seq."""
    before = await stage.fill(20)
    stage.admin.delete(stage.key("meta"))

    after = await stage.put(data("new"), number=1)

    assert after.head == 1
    assert after.line.split(b".")[0] != before.line.split(b".")[0]
    assert await stage.seqs() == [1]


async def test_meta_without_its_log_is_a_missing_one(stage: Stage) -> None:
    before = await stage.fill(3)
    stage.admin.hdel(stage.key("meta"), "log")

    after = await stage.put(data("new"), number=1)

    assert (after.head, after.line == before.line) == (1, False)


async def test_times_to_live_are_a_third_above_their_value_and_are_renewed(stage: Stage) -> None:
    await stage.put(delta("r", "x"), key="k")
    await stage.claimed()
    minute = 60_000

    def ttl(part: str) -> int:
        return int(stage.admin.pttl(stage.key(part)))

    assert 399_000 < ttl("log") <= 400_000
    for part in ("meta", "text:r", "clients", "seen"):
        assert 32 * 60 * minute - 1_000 < ttl(part) <= 32 * 60 * minute, part
    for part in ("routes", "gws"):
        assert 79_000 < ttl(part) <= 80_000, part

    # Half an hour later, as far as the keys know.
    stage.admin.pexpire(stage.key("log"), 100_000)
    stage.admin.pexpire(stage.key("meta"), 23 * 60 * minute)
    stage.change_log(ts=stage.now_ms() - 30 * minute)
    await stage.put(data())

    assert 399_000 < ttl("log") <= 400_000
    assert 32 * 60 * minute - 1_000 < ttl("meta") <= 32 * 60 * minute


async def test_ended_runs_live_as_long_as_their_texts_may_be_asked_for(stage: Stage) -> None:
    await stage.put(delta("r", "x"), run_end("r"))
    assert 399_000 < stage.admin.pttl(stage.key("text:r")) <= 400_000

    await stage.put(delta("r2", "x"))

    assert stage.admin.pttl(stage.key("text:r2")) > 3_600_000


async def test_sessions_leave_nothing_behind(tmp_path: Path) -> None:
    """R23: no key without an end, each log within its cap, and after that end the keyspace is empty."""
    server = Server(tmp_path, "--appendonly", "no")
    server.start()
    try:
        async with staged(server.address, server.admin) as stage:
            for _ in range(200):
                fresh = Stage(stage.client, stage.store._scripts, server.admin)
                await fresh.put(*[data("x" * 100)] * 50)
                await fresh.claimed()
            assert server.admin.dbsize() >= 200 * 4
            for key in list(server.admin.scan_iter("*", count=1000)):
                assert server.admin.pttl(key) > 0, key
                server.admin.pexpire(key, 1)
            async with asyncio.timeout(5):
                while server.admin.dbsize():  # its own cycle of expiry, ten times a second
                    await asyncio.sleep(0.02)
    finally:
        server.end()


async def _one_kib(stage: Stage) -> Item:
    """A message whose frame will have 1,024 bytes."""
    seq_digits = len(str(stage.numbers[next(iter(stage.numbers))] + 1)) if stage.numbers else 1
    envelope = len(
        '{"type":"text","seq":,"timestamp":1234567890123,"session_id":"","payload":{"kind":"data","text":""}}'
    )
    return data("x" * (KIB - envelope - seq_digits - len(stage.ref.session)))
