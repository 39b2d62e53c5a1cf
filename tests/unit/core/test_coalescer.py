"""The text of a poor connection: merged, complete, in order, and never later than a turn (A11)."""

import json

from gateway.core.coalescer import SLOTS, Coalescer
from gateway.core.connection import Connection
from gateway.domain.sessions.states import State
from gateway.domain.wire.bus import HeadNotice
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import RunId
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def coalescer_of(it: Stage) -> Coalescer:
    return Coalescer(it.measures, lambda: it.now[0])


async def slowed(it: Stage, *, is_acking: bool = False) -> tuple[Coalescer, Connection, FakeLink]:
    coalescer = coalescer_of(it)
    connection, link = await it.connect(is_acking=is_acking)
    coalescer.start(connection)
    return coalescer, connection, link


async def turn(coalescer: Coalescer, turns: int = 1) -> None:
    """Every connection has had its turn, and what that brings about."""
    for _ in range(turns * SLOTS):
        coalescer.tick()
    await settle()


async def test_what_came_since_the_last_turn_goes_out_as_one_frame() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"abcdef")
        assert link.kinds() == ["welcome"]

        await turn(coalescer)
        assert link.kinds() == ["welcome", "1-6"]
        assert link.text() == "abcdef"

        it.append(*"gh")
        await turn(coalescer)
        assert link.kinds() == ["welcome", "1-6", "7-8"]
        assert connection.state is State.COALESCING
        assert it.log.reads == []  # from memory: Redis has no part in a bad network
        assert it.measures.coalesced_messages == 6
        assert it.measures.messages_delivered == 2


async def test_a_single_message_is_what_it_was() -> None:
    async with stage() as it:
        coalescer, _, link = await slowed(it)
        it.append("a")
        await turn(coalescer)

        assert link.kinds() == ["welcome", "1-1"]
        assert "first_seq" not in link.frames[-1]


async def test_frames_stay_below_their_limit() -> None:
    async with stage() as it:
        coalescer, _, link = await slowed(it)
        it.append(*("x" * 5_000 for _ in range(6)))
        await turn(coalescer)

        assert link.seqs() == list(range(1, 7))
        assert all(len(json.dumps(frame)) <= 16 * KIB for frame in link.frames)
        assert len(link.frames) == 3


async def test_a_runs_end_comes_with_the_last_of_its_text_in_order() -> None:
    async with stage() as it:
        coalescer, _, link = await slowed(it)
        it.append(*"abc")
        it.log.end_run()
        await turn(coalescer)

        assert link.kinds() == ["welcome", "1-3", "4-4"]


async def test_control_does_not_wait() -> None:
    async with stage() as it:
        _, connection, link = await slowed(it)
        it.append(*"abc")
        connection.send_control({"kind": "pong"})

        assert link.kinds() == ["welcome", "pong"]


async def test_its_end_gives_what_waited_at_once_and_is_live() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"abc")
        coalescer.stop(connection)
        it.append("d")
        await turn(coalescer)
        it.append("e")

        assert connection.state is State.LIVE
        assert link.kinds() == ["welcome", "1-3", "4-4", "5-5"]


async def test_messages_that_overtook_each_other_are_put_in_order() -> None:
    async with stage() as it:
        coalescer, _, link = await slowed(it)
        heard: list[bytes] = []
        bus, it.log.bus = it.log.bus, heard.append
        it.append(*"abc")
        for message in (heard[1], heard[0], heard[2], heard[1]):
            bus(message)
        await turn(coalescer)

        assert link.kinds() == ["welcome", "1-3"]
        assert it.log.reads == []


async def test_a_hole_is_waited_for_once_and_then_read_from_the_log() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append("a")
        it.append("b", is_heard=False)
        it.append("c")
        await turn(coalescer)
        assert link.kinds() == ["welcome", "1-1"]
        assert it.log.reads == []

        await turn(coalescer)
        assert link.seqs() == [1, 2, 3]
        assert it.log.reads == [1]
        assert connection.state is State.LIVE  # here nobody slows it again


async def test_a_lost_last_message_is_found_by_a_notice_of_the_head() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append("a", is_heard=False)
        await turn(coalescer, 2)
        assert link.seqs() == []

        it.hub.on_heads((HeadNotice(connection.session.key, connection.line, 1),), "notice")
        await turn(coalescer, 2)
        assert link.seqs() == [1]


async def test_another_fork_is_judged_by_the_log_before_anything_is_written() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"ab")
        await turn(coalescer)
        it.append("c")
        it.log.fork()
        it.append("d")
        await turn(coalescer)

        assert link.kinds() == ["welcome", "1-2", "forked", "3-4"]
        assert connection.line == it.log.log.line


async def test_a_notice_of_another_fork_leads_to_the_log() -> None:
    """Of a session where nothing is said, and nobody else is."""
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.log.fork()
        it.hub.on_heads((HeadNotice(connection.session.key, it.log.log.line, 0),), "notice")
        await turn(coalescer)

        assert link.kinds() == ["welcome", "forked"]


async def test_what_has_left_the_log_meanwhile_is_rebuilt_or_named() -> None:
    """A claim for the same socket found it below the log."""
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"abc", is_heard=False)
        it.log.trim(2)
        connection.settle_on(it.log.log)
        await turn(coalescer)

        assert link.kinds() == ["welcome", "gap", "3-3"]


async def test_what_was_queued_before_it_goes_out_before_what_is_merged() -> None:
    async with stage() as it:
        coalescer = coalescer_of(it)
        connection, link = await it.connect()
        it.log.append("a")  # of a batch that is not over
        coalescer.start(connection)
        it.log.append("b")
        it.log.append("c")
        await turn(coalescer)
        it.hub.flush()

        assert link.kinds() == ["welcome", "1-1", "2-3"]


async def test_nothing_of_a_run_follows_its_interrupt() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"ab")
        await turn(coalescer)
        it.append(*"cd")
        connection.cut(RunId("r1"))
        it.append("e")
        it.log.end_run()
        await turn(coalescer)

        assert link.text() == "ab"
        assert [frame["payload"]["kind"] for frame in link.frames[1:]] == ["delta", "cut", "run_end"]
        assert link.seqs() == list(range(1, 7))


async def test_a_pause_holds_and_everything_comes_afterwards() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"ab")
        connection.pause()
        await turn(coalescer, 2)
        assert link.seqs() == []

        connection.go_on()
        await settle()
        assert link.seqs() == [1, 2]


async def test_more_than_is_held_is_read_from_the_log() -> None:
    async with stage(held_bytes=16 * KIB) as it:
        coalescer, _, link = await slowed(it)
        it.append(*("x" * KIB for _ in range(18)))
        await turn(coalescer)

        assert link.seqs() == list(range(1, 19))
        assert it.log.reads[:1] == [0]


async def test_a_client_that_acknowledges_nothing_falls_behind_at_its_window() -> None:
    async with stage(unacked_bytes=16 * KIB) as it:
        coalescer, connection, _ = await slowed(it, is_acking=True)
        it.append(*("x" * KIB for _ in range(18)))
        await turn(coalescer)

        assert connection.state is State.LAGGING
        assert it.measures.lagging_entered == 1
        connection.begin_close(CloseCode.NORMAL, "moved")
        await settle()


async def test_who_has_fallen_behind_holds_nothing() -> None:
    """The log has it: on a bad network all connections would each hold the bound of it, while none takes anything."""
    async with stage() as it:
        coalescer, connection, _ = await slowed(it, is_acking=True)
        while connection.state is State.COALESCING:
            it.append("x" * 8_000)
            await turn(coalescer)
        it.append("x" * 8_000)
        held = connection.held
        connection.begin_close(CloseCode.NORMAL, "moved")
        await settle()

        assert held is None


async def test_who_has_left_is_forgotten() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append(*"ab")
        connection.begin_close(CloseCode.NORMAL, "moved")
        await turn(coalescer)

        assert link.seqs() == []
        assert connection.state is State.DRAINING
        assert not any(coalescer._slots)


async def test_what_it_says_twice_changes_nothing() -> None:
    async with stage() as it:
        coalescer, connection, link = await slowed(it)
        it.append("a")
        coalescer.start(connection)
        coalescer.stop(connection)
        coalescer.stop(connection)

        assert link.seqs() == [1]
        assert connection.state is State.LIVE
