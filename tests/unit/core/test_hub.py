"""From the bus to the socket: each seq once, in order, on its own line; what is lost is repaired (G1, G3, G7, G11)."""

import asyncio

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.bus import HeadNotice
from tests.unit.core.stage import settle, stage


async def test_a_fresh_client_is_welcomed_and_gets_what_comes() -> None:
    async with stage() as it:
        it.append("old")
        connection, link = await it.connect()

        it.append("a", "b")

        welcome = link.control("welcome")[0]
        assert (welcome["resumed"], welcome["head"], welcome["cursor"]) == ("fresh", 1, "epoch0.fork0.1")
        assert welcome["connection"] == connection.id
        assert link.seqs() == [2, 3]
        assert connection.state is State.LIVE


async def test_one_write_carries_all_that_a_batch_brought() -> None:
    async with stage() as it:
        _, link = await it.connect()
        before = link.writes
        for text in "abc":
            it.log.append(text)

        it.hub.flush()

        assert link.writes == before + 1
        assert link.seqs() == [1, 2, 3]


async def test_every_connection_of_a_session_gets_it() -> None:
    async with stage() as it:
        _, first = await it.connect("c1")
        _, second = await it.connect("c2")

        it.append("a")

        assert first.seqs() == second.seqs() == [1]


async def test_repeated_and_old_messages_are_dropped() -> None:
    async with stage() as it:
        _, link = await it.connect()
        message = it.log.append("a")
        it.hub.on_message(message)
        it.append("b")
        it.hub.on_message(message)
        it.hub.flush()

        await settle()

        assert link.seqs() == [1, 2]
        assert not it.log.reads


async def test_a_hole_is_repaired_by_one_read_for_all_connections() -> None:
    async with stage() as it:
        _, first = await it.connect("c1")
        _, second = await it.connect("c2")
        it.append("a")
        it.append("b", "c", is_heard=False)
        it.append("d")

        await settle()

        assert first.seqs() == second.seqs() == [1, 2, 3, 4]
        assert it.log.reads == [1]
        assert it.measures.repairs == {"hole": 1}


async def test_frames_that_were_only_overtaken_are_sorted_without_a_read() -> None:
    """On a cluster messages come by several ways (redis.md)."""
    async with stage(overtaking_seconds=0.001) as it:
        _, link = await it.connect()
        messages: list[bytes] = []
        it.log.bus = messages.append
        it.append("a", "b", "c", "d")
        first, second, third, fourth = messages

        for message in (third, fourth, second, first):
            it.hub.on_message(message)
        it.hub.flush()
        await asyncio.sleep(0.01)
        await settle()

        assert link.seqs() == [1, 2, 3, 4]
        assert it.log.reads == []
        assert it.measures.repairs == {}


async def test_what_does_not_come_in_time_is_read_also_where_frames_overtake() -> None:
    async with stage(overtaking_seconds=0.001) as it:
        _, link = await it.connect()
        it.append("a", is_heard=False)
        it.append("b")

        await asyncio.sleep(0.01)
        await settle()

        assert link.seqs() == [1, 2]
        assert it.measures.repairs == {"hole": 1}


async def test_what_comes_during_the_repair_read_follows_it() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.log.gate = asyncio.Event()
        it.append("a", is_heard=False)
        it.append("b")
        await settle()
        it.append("c", "d")
        await settle()
        assert link.seqs() == []

        it.log.gate.set()
        await settle()

        assert link.seqs() == [1, 2, 3, 4]
        assert it.log.reads == [0]


async def test_a_second_hole_during_the_read_is_repaired_too() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.log.gate = asyncio.Event()
        it.append("a", is_heard=False)
        it.append("b")
        await settle()
        it.append("c", is_heard=False)
        it.append("d")
        it.log.gate.set()

        await settle()

        assert link.seqs() == [1, 2, 3, 4]


async def test_held_frames_beyond_the_bound_are_read_again() -> None:
    async with stage(held_bytes=16 * 1024) as it:
        _, link = await it.connect()
        it.log.gate = asyncio.Event()
        it.append("a", is_heard=False)
        it.append("b")
        await settle()
        it.append(*("x" * 6_000 for _ in range(5)))
        it.log.gate.set()

        await settle()

        assert link.seqs() == list(range(1, 8))
        assert len(it.log.reads) == 2


async def test_a_connection_that_has_it_already_does_not_wait_for_the_repair_of_another() -> None:
    async with stage() as it:
        _, behind = await it.connect("c1")
        it.append("a", is_heard=False)
        _, ahead = await it.connect("c2")
        it.log.gate = asyncio.Event()

        it.append("b")
        await settle()

        assert ahead.seqs() == [2]
        it.log.gate.set()
        await settle()
        assert behind.seqs() == [1, 2]


@pytest.mark.looptime
async def test_repair_goes_on_after_redis_was_away() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.log.failures = 2
        it.append("a", is_heard=False)
        it.append("b")

        await asyncio.sleep(1)  # virtual

        assert link.seqs() == [1, 2]


async def test_a_repair_longer_than_a_page_reads_on() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        _, link = await it.connect()
        it.append(*("x" * 1_500 for _ in range(9)), is_heard=False)
        it.append("y")

        await settle()

        assert link.seqs() == list(range(1, 11))
        assert len(it.log.reads) > 2


async def test_a_repair_of_what_was_trimmed_says_so_at_that_place() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append("a")
        it.append("b", "c", is_heard=False)
        it.log.trim(2)
        it.append("d")

        await settle()

        assert link.kinds() == ["welcome", "1-1", "gap", "3-4"]
        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"]) == (2, 2, "evicted")
        assert gap["cursor"] == "epoch0.fork0.2"


async def test_a_log_that_lost_its_entries_never_leaves_a_silent_hole() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append("a", "b", "c", is_heard=False)
        del it.log.entries[2]
        it.append("d")

        await settle()

        assert link.kinds() == ["welcome", "1-1", "gap", "3-3", "4-4"]


# ---- notices ------------------------------------------------------------------------------------------------------


async def test_a_notice_finds_a_quiet_sessions_only_message() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append("a", is_heard=False)

        it.hub.on_heads([HeadNotice(it.log.ref.key, it.log.log.line, 1)], "notice")
        await settle()

        assert link.seqs() == [1]
        assert it.measures.repairs == {"notice": 1}


async def test_a_notice_of_what_is_there_costs_nothing() -> None:
    async with stage() as it:
        await it.connect()
        it.append("a")

        it.hub.on_heads([HeadNotice(it.log.ref.key, it.log.log.line, 1), HeadNotice(b"other", b"x.y", 5)], "notice")
        await settle()

        assert not it.log.reads
        assert it.measures.checks == {"notice": 1}


async def test_comparing_finds_what_the_subscription_missed() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append("a", "b", is_heard=False)

        await it.hub.compare(list(it.hub.sessions.values()), "subscribed")
        await settle()

        assert link.seqs() == [1, 2]
        assert it.measures.repairs == {"subscribed": 1}


async def test_comparing_says_when_redis_is_away() -> None:
    async with stage() as it:
        await it.connect()
        it.log.failures = 1

        failed = await it.hub.compare(list(it.hub.sessions.values()), "down")

        assert list(failed) == list(it.hub.sessions.values())


# ---- forks and other lives ----------------------------------------------------------------------------------------


async def test_a_fork_without_loss_is_announced_before_its_first_frame() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append("a", "b")
        it.log.fork()
        it.append("c")

        await settle()

        assert link.kinds() == ["welcome", "1-1", "2-2", "forked", "3-3"]
        assert link.control("forked")[0] == {"kind": "forked", "cursor": "epoch0.fork1.2", "base": 2}
        assert it.measures.repairs == {"fork": 1}


async def test_lost_writes_are_an_exact_gap_and_the_new_fork_goes_on() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append(*"abcdefg")
        it.log.fork(lost_writes=5)
        it.append("x", "y")

        await settle()

        assert link.kinds()[-3:] == ["gap", "3-3", "4-4"]
        assert link.control("gap") == [
            {
                "kind": "gap",
                "first": 3,
                "last": 7,
                "reason": "epoch_changed",
                "cursor": "epoch0.fork1.2",
                "runs": {"r1": 2},
                "thinking": {},
            }
        ]


async def test_a_message_of_an_older_line_is_never_written() -> None:
    async with stage() as it:
        _, link = await it.connect()
        late = it.log.append("a", is_heard=False)
        it.log.fork(lost_writes=1)
        it.append("b")
        await settle()

        it.hub.on_message(late)
        it.hub.flush()
        await settle()

        assert link.text() == "b"


async def test_a_server_that_lost_writes_and_opened_no_fork_yet_is_claimed_again() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append(*"abcde")
        it.log.lose(2)
        it.log.is_stale = True

        await it.hub.compare(list(it.hub.sessions.values()), "subscribed")
        await settle()

        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"]) == (4, 5, "epoch_changed")
        assert connection.line == b"epoch0.fork1"
        it.append("x")
        assert link.kinds()[-1] == "4-4"


async def test_a_read_that_finds_the_head_below_what_was_sent_claims_again() -> None:
    async with stage() as it:
        _, link = await it.connect()
        it.append(*"abcde")
        it.log.lose(2)
        it.log.is_stale = True
        it.hub.on_heads([HeadNotice(it.log.ref.key, it.log.log.line, 9)], "notice")

        await settle()

        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"]) == (4, 5, "epoch_changed")


async def test_a_server_that_restarted_empty_begins_another_life() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a", "b")
        it.log.restart_empty()

        await it.hub.compare(list(it.hub.sessions.values()), "subscribed")
        await settle()
        it.append("new")
        await settle()

        gap = link.control("gap")[0]
        assert (gap["first"], gap["last"], gap["reason"]) == (1, 2, "unknown_session")
        assert link.seqs() == [1, 2, 1]
        assert connection.line.startswith(b"epoch0x")


# ---- whose it is --------------------------------------------------------------------------------------------------


async def test_a_frame_of_another_session_is_never_sent() -> None:
    async with stage() as it:
        _, link = await it.connect()
        message = it.log.append("a", is_heard=False).replace(b'"session_id":"chat-1"', b'"session_id":"chat-2"')

        it.hub.on_message(message)
        it.hub.flush()
        await settle()

        assert link.seqs() == []
        assert it.measures.foreign_frames == 1


@pytest.mark.parametrize("message", [b"", b"1m", b"1m\nkey\nline\nnumber\nd\nr\n1\n1\n{}", b"1m\nk\nl\n1\n{}"])
async def test_malformed_messages_are_counted(message: bytes) -> None:
    async with stage() as it:
        it.hub.on_message(message)

        assert it.measures.bus_malformed == 1


async def test_a_session_without_connections_is_forgotten() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        it.hub.detach(connection)
        it.hub.detach(connection)

        it.append("a")

        assert not it.hub.sessions
        assert not it.hub.connections
        assert it.hub.find(it.log.ref.key, connection.id) is None


async def test_a_close_in_the_middle_of_a_batch_comes_after_what_was_due() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.log.append("a")
        connection.superseded()
        it.log.append("b")
        it.hub.flush()

        assert link.kinds() == ["welcome", "1-1", "superseded"]
        assert link.closed is not None
        assert link.closed[0] == 4409


async def test_delivery_is_counted() -> None:
    async with stage() as it:
        await it.connect("c1")
        await it.connect("c2")
        it.append(*"abcdefgh")

        assert it.measures.messages_delivered == 16
        assert it.measures.bytes_delivered > 16 * 100
        assert sum(it.measures.publish_to_write_seconds.counts) == 1
