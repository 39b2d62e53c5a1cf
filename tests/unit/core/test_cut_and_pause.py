"""Interrupt and pause on a connection: nothing of it after the acknowledgement, nothing lost by the other (A20)."""

import asyncio
import random

import pytest

from gateway.domain.sessions.states import State
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, RunId
from gateway.ports import Cut, Seen
from tests.unit.core.stage import Stage, settle, stage

KIB = 1024


def cursor(seq: int) -> Cursor:
    return Cursor("epoch0", "fork0", seq)


async def test_after_a_cut_no_text_of_the_run_is_written() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a", "b")
        it.log.append("c", is_heard=False)
        connection.cut("r1")
        acknowledged = len(link.frames)
        it.log.append("d", is_heard=False)
        it.log.end_run()
        await settle()
        it.log.append("later", "r2")
        it.hub.flush()

        assert [f["payload"]["kind"] for f in link.frames[acknowledged:]] == ["cut", "run_end", "delta"]
        assert link.kinds()[acknowledged:] == ["3-4", "5-5", "6-6"]
        assert connection.state is State.LIVE


async def test_frames_of_other_runs_keep_their_place() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a")
        connection.cut("r1")
        for text, run in (("b", "r1"), ("c", "r1"), ("d", "r2"), ("e", "r1")):
            it.log.append(text, run)
        it.log.end_run("r1")
        await settle()

        assert link.kinds() == ["welcome", "1-1", "2-3", "4-4", "5-5", "6-6"]
        assert [f["payload"]["kind"] for f in link.frames[2:]] == ["cut", "delta", "cut", "run_end"]


async def test_a_cut_again_changes_nothing() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        it.append("a")
        connection.cut("r1")
        await settle()
        reads = len(it.log.reads)
        connection.cut("r1")
        await settle()

        assert len(it.log.reads) == reads
        assert connection.state is State.LIVE


async def test_what_is_read_when_the_cut_comes_is_cut_too() -> None:
    """The page was read before the interrupt, and live frames of the run are held meanwhile."""
    async with stage(unsent_bytes=16 * KIB) as it:
        connection, link = await it.connect()
        link.stall()
        it.append(*("x" * 2_000 for _ in range(30)))
        assert connection.state is State.LAGGING
        it.log.gate = gate = asyncio.Event()
        link.go_on()
        await settle()
        written = len(link.frames)
        it.append("held")
        connection.cut("r1")
        it.log.end_run()
        gate.set()
        await settle()

        assert {f["payload"]["kind"] for f in link.frames[written:]} == {"cut", "run_end"}
        assert link.seqs() == list(range(1, 33))


@pytest.mark.parametrize("is_live", [True, False])
async def test_whoever_reads_the_log_learns_of_an_interrupt_whose_notice_was_lost(is_live: bool) -> None:
    """Interrupted over HTTP, or through another gateway, while the bus did not reach this one."""
    async with stage(unsent_bytes=16 * KIB) as it:
        interrupting, link = await it.connect()
        other, other_link = await it.connect("c2")
        if not is_live:
            link.stall()
            it.append(*("x" * 2_000 for _ in range(30)))
            assert interrupting.state is State.LAGGING
        it.log.append("b", is_heard=False)
        it.log.cuts[interrupting.client] = (Cut(RunId("r1"), None),)
        it.log.end_run()
        it.hub.flush()
        link.go_on()
        await settle(50)

        assert [f["payload"]["kind"] for f in link.frames[-2:]] == ["cut", "run_end"]
        assert "b" not in link.text()
        assert other_link.text()[-1] == "b"
        assert {interrupting.state, other.state} == {State.LIVE}


@pytest.mark.parametrize("start", [False, True])
async def test_a_cut_holds_after_a_resume(start: bool) -> None:
    """From before the cut: all above the cursor. Anew from the start: what was seen is shown again."""
    async with stage() as it:
        it.append(*"abcdef")
        it.log.end_run()
        it.log.cuts[ClientId("c1")] = (Cut(RunId("r1"), Seen(4, 4)),)
        _, link = await it.connect(cursor=None if start else cursor(2), start=start)

        assert link.text() == ("abcd" if start else "")
        assert link.kinds() == (["welcome", "1-4", "5-6", "7-7"] if start else ["welcome", "3-6", "7-7"])


async def test_a_stretch_over_many_pages_is_one_frame() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(20)))
        it.log.cuts[ClientId("c1")] = (Cut(RunId("r1"), None),)
        it.log.end_run()
        connection, link = await it.connect(cursor=cursor(0))
        await settle(200)

        assert link.kinds() == ["welcome", "1-20", "21-21"]
        assert connection.state is State.LIVE


async def test_a_stretch_that_is_trimmed_away_meanwhile_is_written_first() -> None:
    async with stage(replay_page_bytes=4_096) as it:
        it.append(*("x" * 900 for _ in range(20)))
        it.log.cuts[ClientId("c1")] = (Cut(RunId("r1"), None),)
        it.log.gate = gate = asyncio.Event()
        connection, link = await it.connect(cursor=cursor(0))
        it.log.trim(15)
        gate.set()
        await settle(200)

        assert link.seqs()[-1] == 20
        assert connection.sent_seq == 20
        assert link.text() == ""


async def test_a_repair_reads_nothing_of_it_either() -> None:
    """Lost writes put the client back before the end of the run, and the bus lost what came then."""
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a")
        connection.cut("r1")
        it.append("b")
        it.log.end_run()
        await settle()
        written = len(link.frames)
        it.log.entries.pop(3)
        it.log.head -= 1
        it.log.fork(lost_writes=1)
        it.append("again", is_heard=False)
        it.log.end_run()
        await settle()

        assert [f["payload"]["kind"] for f in link.frames[written:]] == ["gap", "cut", "run_end"]
        assert connection.state is State.LIVE


# ---- pause ---------------------------------------------------------------------------------------------------------


async def test_a_paused_client_gets_control_and_no_text_then_everything_merged() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        it.append("a")
        connection.pause()
        it.append("b", "c", "d")
        connection.send_control({"kind": "pong"})
        await settle()

        assert link.kinds() == ["welcome", "1-1", "pong"]
        connection.go_on()
        await settle()
        it.append("e")
        assert link.kinds() == ["welcome", "1-1", "pong", "2-4", "5-5"]
        assert link.text() == "abcde"


async def test_pause_and_resume_are_idempotent() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        connection.go_on()
        connection.pause()
        connection.pause()
        it.append("a")
        await settle()
        connection.go_on()
        connection.go_on()
        await settle()

        assert link.seqs() == [1]
        assert connection.state is State.LIVE


async def test_a_page_that_was_being_read_is_not_written_in_a_pause() -> None:
    async with stage(unsent_bytes=16 * KIB) as it:
        connection, link = await it.connect()
        link.stall()
        it.append(*("x" * 2_000 for _ in range(30)))
        it.log.gate = gate = asyncio.Event()
        link.go_on()
        await settle()
        before = link.seqs()
        connection.pause()
        gate.set()
        await settle()
        it.append("more")

        assert link.seqs() == before
        connection.go_on()
        await settle()
        assert link.seqs() == list(range(1, 32))


@pytest.mark.parametrize("is_acking", [False, True])
async def test_a_pause_is_no_stop_of_reading(is_acking: bool) -> None:
    async with stage() as it:
        connection, link = await it.connect(is_acking=is_acking)
        it.append("a", "b")
        link.stall()
        connection.pause()
        for _ in range(40):
            it.now[0] += 4
            assert not connection.has_stopped_reading(it.now[0])
        connection.go_on()
        assert not connection.has_stopped_reading(it.now[0])
        link.go_on()


async def test_a_paused_client_that_leaves_leaves_no_task() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        connection.pause()
        it.append("a")
        await settle()
        it.hub.detach(connection)
        connection.end("client")


async def test_a_paused_client_is_cut() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        connection.pause()
        it.append("a", "b")
        connection.cut("r1")
        it.log.end_run()
        connection.go_on()
        await settle()

        assert [f["payload"]["kind"] for f in link.frames[1:]] == ["cut", "run_end"]


@pytest.mark.parametrize("seed", range(40))
async def test_at_random_points(seed: int) -> None:
    """Slow, paused, losing bus messages: each seq once; nothing of a run after its cut; other runs whole."""
    rng = random.Random(seed)
    async with stage(unsent_bytes=16 * KIB, replay_page_bytes=4_096) as it:
        connection, link = await it.connect()
        other, other_link = await it.connect("c2")
        stalled = False
        cut_at = rng.randrange(5, 60)
        acknowledged = 0

        for turn in range(70):
            if turn < cut_at or rng.random() < 0.5:
                run = rng.choice(["r1", "r2"]) if turn < cut_at else "r2"
                _append(it, rng, run)
            match rng.randrange(8):
                case 0:
                    connection.pause()
                case 1:
                    connection.go_on()
                case 2 if not stalled:
                    link.stall()
                    stalled = True
                case 3 if stalled:
                    link.go_on()
                    stalled = False
            if turn == cut_at:
                it.log.end_run("r1", is_heard=rng.random() < 0.8)
                connection.cut("r1")
                acknowledged = connection.sent_bytes
                before = link.text_bytes_of("r1") if not stalled else None
            await settle(rng.randrange(4))
        if stalled:
            link.go_on()
        connection.go_on()
        await settle(200)
        it.log.append("end", "r2")
        it.hub.flush()
        await settle(200)

        assert acknowledged
        assert link.seqs() == other_link.seqs() == list(range(1, it.log.head + 1))
        cuts = [f for f in link.frames if f["payload"].get("kind") == "cut"]
        shown = link.text_bytes_of("r1")
        assert shown == it.log.ats["r1"] or cuts
        if before is not None:
            assert shown == before, "text of the run after its cut"
        assert other_link.text_bytes_of("r1") == it.log.ats["r1"]
        assert link.text_bytes_of("r2") == it.log.ats["r2"]
        assert other.state is State.LIVE


def _append(it: Stage, rng: random.Random, run: str) -> None:
    it.log.append("x" * rng.randrange(1, 1_500), run, is_heard=rng.random() < 0.9)
    it.hub.flush()
