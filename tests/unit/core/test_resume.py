"""From a position to live, for who connects (G3, G4, G6)."""

import asyncio

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor
from tests.unit.core.stage import settle, stage


def cursor(seq: int, fork: str = "fork0", epoch: str = "epoch0") -> Cursor:
    return Cursor(epoch, fork, seq)


async def test_a_cursor_gets_what_it_lacks_merged_then_live() -> None:
    async with stage() as it:
        it.append(*"abcde")
        _, link = await it.connect(cursor=cursor(2))
        it.append("f")

        assert link.kinds() == ["welcome", "3-5", "6-6"]
        assert link.control("welcome")[0]["resumed"] == "full"
        assert link.control("welcome")[0]["cursor"] == "epoch0.fork0.2"
        assert link.text() == "cdef"


async def test_the_start_replays_everything_retained() -> None:
    async with stage() as it:
        it.append(*"abc")
        _, link = await it.connect(start=True)

        assert link.seqs() == [1, 2, 3]
        assert link.control("welcome")[0]["resumed"] == "fresh"


@pytest.mark.parametrize(
    ("seq", "kinds"),
    [
        (5, ["welcome"]),
        (4, ["welcome", "5-5"]),
        (3, ["welcome", "4-5"]),
        (2, ["welcome", "gap", "4-5"]),
        (6, ["welcome", "gap", "gap", "4-5"]),
    ],
)
async def test_a_bare_seq_at_the_edges_of_the_log(seq: int, kinds: list[str]) -> None:
    async with stage() as it:
        it.append(*"abcde")
        it.log.trim(3)

        _, link = await it.connect(bare_seq=seq)

        assert link.kinds() == kinds


async def test_a_cursor_of_an_older_fork_is_judged_and_the_rest_read() -> None:
    async with stage() as it:
        it.append(*"abcde")
        it.log.fork(lost_writes=2)
        it.append(*"xy")

        _, link = await it.connect(cursor=cursor(5))

        assert link.kinds() == ["welcome", "gap", "4-5"]
        assert link.control("welcome")[0]["cursor"] == "epoch0.fork1.3"
        assert (link.control("gap")[0]["first"], link.control("gap")[0]["last"]) == (4, 5)
        assert link.text() == "xy"


async def test_a_fork_is_announced_to_who_comes_back_with_nothing_lost() -> None:
    async with stage() as it:
        it.append("a")
        it.log.fork()
        connection, link = await it.connect(cursor=cursor(1))

        assert link.kinds() == ["welcome", "forked"]
        assert link.control("welcome")[0]["resumed"] == "full"
        assert connection.state is State.LIVE


async def test_a_cursor_of_another_life() -> None:
    async with stage() as it:
        it.append("a")
        _, link = await it.connect(cursor=cursor(7, epoch="older"))

        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"], gap["cursor"]) == (1, 7, "epoch_changed", "epoch0.fork0.0")
        assert link.seqs() == [1]


async def test_a_bare_seq_in_a_session_that_did_not_exist() -> None:
    async with stage() as it:
        it.log.exists = False
        _, link = await it.connect(bare_seq=3)

        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"]) == (1, 3, "unknown_session")
        assert link.control("welcome")[0]["resumed"] == "gap"


async def test_what_comes_between_claim_and_upgrade_follows_the_replay() -> None:
    async with stage() as it:
        it.append("a")
        connection = it.make()
        claimed = await it.claim(connection, cursor=cursor(0))
        it.append("b", "c")

        link = it.open(connection, claimed)

        assert link.seqs() == [1, 2, 3]
        assert connection.state is State.LIVE
        assert not it.log.reads


async def test_what_was_lost_between_claim_and_upgrade_is_read() -> None:
    async with stage() as it:
        connection = it.make()
        claimed = await it.claim(connection)
        it.append("a", is_heard=False)
        it.append("b")

        link = it.open(connection, claimed)
        await settle()

        assert link.seqs() == [1, 2]
        assert connection.state is State.LIVE


async def test_a_replay_of_many_pages_joins_live_exactly() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(20)))
        connection, link = await it.connect(cursor=cursor(0))
        it.append("y")
        await settle()

        assert link.seqs() == list(range(1, 22))
        assert connection.state is State.LIVE
        assert it.measures.replayed_messages == 20


async def test_live_messages_during_every_page_are_neither_lost_nor_repeated() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(20)))
        connection = it.make()
        claimed = await it.claim(connection, cursor=cursor(0))
        link = it.open(connection, claimed)
        count = 20
        while connection.state is not State.LIVE:
            it.append("y", is_heard=count % 3 != 0)
            count += 1
            await asyncio.sleep(0)
        it.append("z")
        await settle()

        assert link.seqs() == list(range(1, count + 2))


async def test_a_page_trimmed_during_the_replay_is_a_gap_at_its_place() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(12)))
        connection = it.make()
        claimed = await it.claim(connection, cursor=cursor(0))
        it.log.trim(9)
        link = it.open(connection, claimed)
        await settle()

        assert [seq for seq in range(1, 13) if seq not in link.seqs()] == list(
            range(link.control("gap")[0]["first"], 10)
        )
        assert link.control("gap")[0]["last"] == 9
        assert connection.state is State.LIVE


@pytest.mark.looptime
async def test_a_replay_waits_for_redis_to_come_back() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(12)))
        connection = it.make()
        claimed = await it.claim(connection, cursor=cursor(0))
        it.log.failures = 3
        link = it.open(connection, claimed)
        await asyncio.sleep(5)

        assert link.seqs() == list(range(1, 13))
        assert link.closed is None


async def test_told_to_close_before_the_upgrade_it_closes_at_once() -> None:
    async with stage() as it:
        connection = it.make()
        claimed = await it.claim(connection)
        connection.superseded()

        link = it.open(connection, claimed)

        assert link.closed == (CloseCode.SUPERSEDED, "superseded")
        assert link.frames == []
