"""From a position to live again, for whose route was handed on or lost (G4, G7)."""

import asyncio

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor
from gateway.ports import ClaimRefusal, ClaimRefused
from tests.unit.core.stage import fill, settle, stage

KIB = 1024


# ---- make before break --------------------------------------------------------------------------------------------


async def test_both_receive_until_the_new_one_is_live_and_the_route_is_settled() -> None:
    async with stage() as it:
        old, old_link = await it.connect("old", "me")
        old.replacing()
        it.append("a")
        new, new_link = await it.connect("new", "me", replaces="old", cursor=Cursor("epoch0", "fork0", 0))
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
        assert it.log.claims[-1].cursor == Cursor("epoch0", "fork0", 1)
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


async def test_who_ends_while_its_new_claim_waits_for_memory_claims_nothing() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        claims = len(it.log.claims)
        async with it.hub.resume.budget.share(it.hub.shared.limits.recovery_memory_bytes):
            reclaim = it.owner.start("reclaim", connection.reclaim())
            await settle()
            assert it.hub.resume.budget.waiting == 1
            connection.end("lost")
            it.hub.detach(connection)
        await reclaim

        assert len(it.log.claims) == claims
