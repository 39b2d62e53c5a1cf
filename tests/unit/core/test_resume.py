"""From a position to live, for who connects, who reads slowly and whose route was lost (G3, G4, G6, G7)."""

import asyncio

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor
from gateway.ports import ClaimRefusal, ClaimRefused
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def cursor(seq: int, fork: str = "fork0", epoch: str = "epoch0") -> Cursor:
    return Cursor(epoch, fork, seq)


# ---- at connect ---------------------------------------------------------------------------------------------------


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


# ---- slow readers (AUTO-5) ----------------------------------------------------------------------------------------


async def fill(it: Stage, kib: int) -> None:
    for _ in range(kib):
        it.append("x" * KIB)
    await settle()


async def test_a_client_that_does_not_read_costs_bounded_memory_and_loses_nothing() -> None:
    async with stage() as it:
        slow, slow_link = await it.connect("slow")
        _, quick_link = await it.connect("quick")
        slow_link.stall()

        await fill(it, 600)

        assert slow.state is State.LAGGING
        assert slow_link.unsent_bytes() < (256 + 20) * KIB
        assert quick_link.seqs() == list(range(1, 601))
        assert it.measures.lagging_entered == 1
        slow_link.go_on()
        await settle(200)
        assert slow.state is State.LIVE
        assert slow_link.seqs() == list(range(1, 601))


async def test_who_catches_up_gets_merged_frames_of_bounded_size() -> None:
    async with stage() as it:
        slow, link = await it.connect()
        link.stall()
        await fill(it, 400)
        link.go_on()
        await settle(200)

        merged = [f for f in link.frames if "first_seq" in f]
        assert merged
        assert max(len(f["payload"]["text"]) for f in merged) <= 16 * KIB
        assert link.text() == "x" * KIB * 400
        assert slow.state is State.LIVE


async def test_control_passes_while_text_waits() -> None:
    async with stage() as it:
        slow, link = await it.connect()
        link.stall()
        await fill(it, 400)
        slow.send_control({"kind": "expiring"})
        link.take(link.unsent_bytes())

        assert link.kinds()[-1] == "expiring"
        assert slow.state is State.LAGGING
        link.go_on()


async def test_past_retention_a_slow_reader_gets_a_gap_and_stays() -> None:
    async with stage() as it:
        slow, link = await it.connect()
        link.stall()
        await fill(it, 400)
        it.log.trim(390)
        link.go_on()
        await settle(200)

        gap = link.control("gap")[0]
        assert gap["last"] == 390
        assert link.seqs() == [*range(1, gap["first"]), *range(391, 401)]
        assert link.closed is None
        assert slow.state is State.LIVE


async def test_a_close_ends_the_catch_up() -> None:
    async with stage() as it:
        slow, link = await it.connect()
        link.stall()
        await fill(it, 400)

        slow.begin_close(CloseCode.RESTART, "restart")
        await settle()

        assert len(it.owner) == 0
        assert link.closed == (CloseCode.RESTART, "restart")


# ---- clients that acknowledge -------------------------------------------------------------------------------------


async def test_an_acking_client_has_a_bounded_window() -> None:
    async with stage() as it:
        connection, link = await it.connect(is_acking=True)
        await fill(it, 300)

        assert connection.state is State.LAGGING
        assert 120 * KIB < connection.unacked_bytes < 136 * KIB
        received = link.seqs()[-1]
        assert received < 140

        while link.seqs()[-1] < 300:
            before = link.seqs()[-1]
            connection.on_ack(before)
            await settle()
            assert connection.unacked_bytes <= 136 * KIB
            assert link.seqs()[-1] > before
        connection.on_ack(300)
        await settle()
        assert link.seqs() == list(range(1, 301))
        assert connection.state is State.LIVE


async def test_acks_out_of_range_change_nothing() -> None:
    async with stage() as it:
        connection, _ = await it.connect(is_acking=True)
        it.append("a", "b")
        for seq in (3, 2**53, 0, -1):
            connection.on_ack(seq)
        assert connection.acked_seq == 0

        connection.on_ack(2)
        connection.on_ack(1)

        assert connection.acked_seq == 2
        assert connection.unacked_bytes == 0


async def test_what_is_stored_as_acked_is_only_what_an_owner_says() -> None:
    async with stage() as it:
        connection, _ = await it.connect(is_acking=True)
        it.append("a")
        connection.on_ack(1)
        assert connection.as_route().acked_seq == 1

        connection.replacing()

        assert connection.as_route().acked_seq is None


async def test_an_ack_beyond_a_rolled_back_position_is_forgotten() -> None:
    async with stage() as it:
        connection, _ = await it.connect(is_acking=True)
        it.append(*"abcde")
        connection.on_ack(5)
        it.log.fork(lost_writes=3)
        it.append("x")
        await settle()

        assert connection.acked_seq == 2


# ---- stopped reading ----------------------------------------------------------------------------------------------


async def test_who_takes_nothing_for_a_minute_has_stopped_reading() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        link.stall()
        it.append("a")
        verdicts = []
        for _ in range(17):
            verdicts.append(connection.has_stopped_reading(it.now[0]))
            it.now[0] += 4

        assert verdicts == [False] * 15 + [True] * 2
        link.go_on()


async def test_who_goes_on_slowly_is_never_closed() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        link.stall()
        await fill(it, 100)
        for _ in range(60):
            it.now[0] += 4
            link.take(100)

            assert not connection.has_stopped_reading(it.now[0])
        link.go_on()


@pytest.mark.parametrize("is_acking", [False, True])
@pytest.mark.parametrize("position", [None, 2, 5])
async def test_who_has_nothing_to_acknowledge_is_not_stopped(position: int | None, is_acking: bool) -> None:
    """At the head after its welcome, or after a gap that ends there: no frame came that an ack could name."""
    async with stage() as it:
        it.append(*"abcde")
        it.log.trim(5)
        connection, _ = await it.connect(cursor=None if position is None else cursor(position), is_acking=is_acking)
        for _ in range(40):
            it.now[0] += 4
            assert not connection.has_stopped_reading(it.now[0])
        assert not connection.unacked_bytes


async def test_pongs_need_no_acknowledgement() -> None:
    """A client that asks for ever and is sent no text is not taken for one that lags."""
    async with stage(unacked_bytes=16 * KIB) as it:
        it.append("a")
        connection, link = await it.connect(is_acking=True)
        for _ in range(300):
            connection.send_control({"kind": "pong", "id": "x" * 100})
        it.append("b")
        connection.on_ack(2)
        await settle()
        it.append("c")

        assert link.seqs() == [2, 3]
        assert connection.state is State.LIVE


async def test_marks_of_rolled_back_frames_are_gone_with_the_next_ack() -> None:
    async with stage() as it:
        connection, _ = await it.connect(is_acking=True)
        await fill(it, 60)
        it.log.fork(lost_writes=50)
        await fill(it, 8)
        connection.on_ack(connection.sent_seq - 1)

        assert 0 < connection.unacked_bytes < 16 * KIB


async def test_for_an_acking_client_only_an_ack_is_progress() -> None:
    async with stage() as it:
        connection, _ = await it.connect(is_acking=True)
        it.append("a", "b")
        assert not connection.has_stopped_reading(it.now[0])
        it.now[0] += 59
        assert not connection.has_stopped_reading(it.now[0])
        connection.on_ack(1)
        it.now[0] += 59
        assert not connection.has_stopped_reading(it.now[0])
        it.now[0] += 1
        assert connection.has_stopped_reading(it.now[0])


# ---- make before break --------------------------------------------------------------------------------------------


async def test_both_receive_until_the_new_one_is_live_and_the_route_is_settled() -> None:
    async with stage() as it:
        old, old_link = await it.connect("old", "me")
        old.replacing()
        it.append("a")
        new, new_link = await it.connect("new", "me", replaces="old", cursor=cursor(0))
        it.append("b")

        assert old_link.seqs() == new_link.seqs() == [1, 2]
        assert not it.log.previous
        old.moved()
        assert old_link.closed == (CloseCode.NORMAL, "moved")
        assert old.is_fenced
        assert new.was_live


async def test_a_new_one_that_lost_the_route_meanwhile_is_superseded() -> None:
    async with stage() as it:
        it.log.settles = False
        _, link = await it.connect("new", "me", replaces="old")

        assert link.closed == (CloseCode.SUPERSEDED, "superseded")


async def test_a_restored_connection_writes_again() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        connection.replacing()
        connection.restored(99)

        assert connection.generation == 99
        assert not connection.is_previous


# ---- routes that were lost ----------------------------------------------------------------------------------------


async def test_a_reclaim_from_what_was_sent_brings_what_was_missed() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a")
        it.append("b", "c", is_heard=False)
        generation = connection.generation

        await connection.reclaim()
        await settle()

        assert link.seqs() == [1, 2, 3]
        assert connection.generation == generation + 1
        assert it.log.claims[-1].reclaims == generation
        assert it.log.claims[-1].cursor == cursor(1)
        assert "welcome" not in link.kinds()[1:]


async def test_a_reclaim_against_a_newer_connection_loses() -> None:
    async with stage() as it:
        connection, link = await it.connect("c1", "me")
        it.log.routes[connection.client] = connection.id.__class__("c2"), 50

        await connection.reclaim()

        assert link.kinds()[-1] == "superseded"
        assert link.closed == (CloseCode.SUPERSEDED, "superseded")


async def test_a_reclaim_of_a_deleted_session_ends_the_socket() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.log.refusal = ClaimRefused(ClaimRefusal.NOT_FOUND)

        await connection.reclaim()

        assert link.closed is not None
        assert link.closed[0] is CloseCode.NOT_FOUND


async def test_a_reclaim_without_redis_leaves_the_socket_alone() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.log.failures = 1

        await connection.reclaim()

        assert link.closed is None
        assert connection.state is State.LIVE


async def test_a_reclaim_before_the_upgrade_does_nothing() -> None:
    """It has no position yet that a claim could be made from."""
    async with stage() as it:
        connection = it.make()
        await it.claim(connection)
        await connection.reclaim()

        assert len(it.log.claims) == 1


@pytest.mark.parametrize("has_ended", [False, True])
async def test_a_socket_that_ends_while_it_claims_again_leaves_no_route(has_ended: bool) -> None:
    """Its release names the new generation, or follows the claim that was under way."""
    async with stage() as it:
        connection, _ = await it.connect()
        reclaiming = asyncio.ensure_future(connection.reclaim())
        await asyncio.sleep(0)
        connection.begin_close(CloseCode.RESTART, "drain")
        if has_ended:
            connection.end("drain")
        await reclaiming

        assert connection.as_route().generation == 2
        assert (not it.log.routes) is has_ended


async def test_two_reclaims_at_once_are_one_claim() -> None:
    async with stage() as it:
        connection, _ = await it.connect()

        await asyncio.gather(connection.reclaim(), connection.reclaim())

        assert len(it.log.claims) == 2


async def test_a_lagging_connection_claims_again_and_reads_on() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        link.stall()
        await fill(it, 400)
        it.log.fork(lost_writes=10)

        await connection.reclaim()
        assert connection.state is State.LAGGING
        link.go_on()
        await settle(300)

        assert link.control("forked") or link.control("gap")
        assert connection.line == b"epoch0.fork1"
        assert connection.state is State.LIVE
        assert link.seqs() == list(range(1, 391))


async def test_two_clients_of_one_session_both_claim_again_on_the_new_life() -> None:
    async with stage() as it:
        first, first_link = await it.connect("c1")
        second, second_link = await it.connect("c2")
        it.append("a")
        it.log.restart_empty()

        await asyncio.gather(first.reclaim(), second.reclaim())
        await settle()

        assert first.line == second.line == it.log.log.line
        assert first_link.kinds()[-1] == second_link.kinds()[-1] == "gap"


@pytest.mark.looptime
async def test_an_old_page_that_comes_after_a_newer_claim_is_not_believed() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a")
        it.log.gate = asyncio.Event()
        it.append("b", is_heard=False)
        it.append("c")
        await settle()
        it.log.fork()
        await connection.reclaim()

        it.log.gate.set()
        await asyncio.sleep(1)  # virtual

        assert not link.control("gap")
        assert link.seqs() == [1, 2, 3]
        assert connection.line == b"epoch0.fork1"
        assert link.kinds().count("forked") == 1


async def test_entries_missing_in_the_middle_of_a_replay_are_a_gap_there() -> None:
    async with stage() as it:
        it.append(*"abcdef")
        del it.log.entries[3]
        del it.log.entries[4]

        _, link = await it.connect(start=True)

        assert link.kinds() == ["welcome", "1-2", "gap", "5-6"]
        assert (link.control("gap")[0]["first"], link.control("gap")[0]["last"]) == (3, 4)


async def test_the_first_close_code_is_the_one() -> None:
    async with stage() as it:
        connection, link = await it.connect()

        connection.begin_close(CloseCode.UNAUTHENTICATED, "expired")
        connection.begin_close(CloseCode.RESTART, "restart")
        connection.superseded()
        connection.end("lost")

        assert link.closed == (CloseCode.UNAUTHENTICATED, "expired")
        assert it.measures.closes == {"expired": 1}


async def test_a_page_from_above_a_rolled_back_position_is_read_again() -> None:
    """The fork loses what the client has, and goes on beyond it before the page is read: nothing of it is a gap."""
    async with stage(unsent_bytes=16 * KIB) as it:
        connection, link = await it.connect()
        link.stall()
        await fill(it, 20)
        assert connection.state is State.LAGGING
        it.log.fork(lost_writes=it.log.head - connection.sent_seq + 2)
        await fill(it, 6)
        link.go_on()
        await settle()

        assert [gap["reason"] for gap in link.control("gap")] == ["epoch_changed"]
        assert connection.sent_seq == it.log.head
