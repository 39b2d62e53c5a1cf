"""From a position to live again, for who reads or acknowledges slowly, or not at all (G6, AUTO-5)."""

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor
from tests.unit.core.stage import fill, settle, stage

KIB = 1024


# ---- slow readers (AUTO-5) ----------------------------------------------------------------------------------------


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
        connection, _ = await it.connect(
            cursor=None if position is None else Cursor("epoch0", "fork0", position), is_acking=is_acking
        )
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


async def test_who_ends_while_its_replay_waits_for_memory_reads_nothing() -> None:
    async with stage() as it:
        slow, link = await it.connect()
        link.stall()
        await fill(it, 400)
        reads = len(it.log.reads)
        async with it.hub.resume.budget.share(it.hub.shared.limits.recovery_memory_bytes):
            link.go_on()
            await settle()
            assert it.hub.resume.budget.waiting == 1
            slow.end("lost")
            it.hub.detach(slow)
        await settle()

        assert len(it.log.reads) == reads
        assert it.hub.resume.budget.held_bytes == 0
