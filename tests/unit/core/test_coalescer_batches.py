"""A turn of a poor connection whose client takes several messages in a frame is one frame (A11)."""

import pytest

from gateway.core.coalescer import Coalescer
from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.outlet import MAX_BATCH_BYTES
from gateway.domain.sessions.states import State
from gateway.domain.wire.capabilities import TEXT_ONLY
from gateway.domain.wire.close_codes import CloseCode
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, stage
from tests.unit.core.test_coalescer import slowed, turn

KIB = 1024


async def batched(it: Stage) -> tuple[Coalescer, Connection, FakeLink]:
    """The same for one that takes several messages in a frame."""
    coalescer, connection, link = await slowed(it)
    connection.capabilities = TEXT_ONLY.with_batches()
    link.texts = 0
    return coalescer, connection, link


def take_turns(it: Stage, words: int) -> None:
    """Two runs, word by word."""
    for number in range(words):
        it.log.append(f"{number} ", f"r{number % 2}")
    it.hub.flush()


async def test_runs_that_take_turns_are_one_frame_for_a_client_that_takes_several_messages_in_one() -> None:
    async with stage() as it:
        coalescer, _, link = await batched(it)
        take_turns(it, 100)
        await turn(coalescer)

        assert link.texts == 1
        assert link.seqs() == list(range(1, 101))
        assert (it.measures.messages_delivered, it.measures.coalesced_messages) == (100, 0)


async def test_who_does_not_say_so_never_gets_several_messages_in_one() -> None:
    async with stage() as it:
        coalescer, _, link = await slowed(it)
        writes = link.writes
        take_turns(it, 100)
        await turn(coalescer)

        assert link.texts == len(link.frames) == 101
        assert link.writes - writes == 1  # what an event stream's four a second are


async def test_neighbours_are_merged_within_a_frame_of_several_too() -> None:
    async with stage() as it:
        coalescer, _, link = await batched(it)
        it.append(*"abc")
        it.log.end_run()
        it.append(*"de", is_heard=True)
        await turn(coalescer)

        assert link.texts == 1
        assert link.kinds()[1:] == ["1-3", "4-4", "5-6"]


async def test_control_is_in_no_frame_of_several_and_waits_for_none() -> None:
    async with stage() as it:
        coalescer, connection, link = await batched(it)
        take_turns(it, 4)
        connection.send_control({"kind": "pong"})
        before = link.kinds()
        await turn(coalescer)

        assert before == ["welcome", "pong"]
        assert link.texts == 2


async def test_sixteen_runs_of_fifty_words_a_second_are_one_frame_a_turn() -> None:
    """More than a person reads at once: far from the page at which a turn is split."""
    async with stage() as it:
        coalescer, _, link = await batched(it)
        for _ in range(4):
            for number in range(16 * 13):
                it.log.append(f"{number}. word ", f"run-{number % 16}")
            it.hub.flush()
            await turn(coalescer)

        assert link.texts == 4
        assert link.seqs() == list(range(1, 4 * 16 * 13 + 1))


@pytest.mark.parametrize(("page_bytes", "frames"), [(4 * KIB, 5), (16 * KIB, 2), (128 * KIB, 1)])
async def test_a_turn_above_a_page_is_more_than_one_frame(page_bytes: int, frames: int) -> None:
    async with stage(replay_page_bytes=page_bytes) as it:
        coalescer, _, link = await batched(it)
        take_turns(it, 128)
        await turn(coalescer)

        assert link.texts == frames
        assert link.seqs() == list(range(1, 129))


@pytest.mark.parametrize(("more_bytes", "frames"), [(0, 1), (1, 2)])
async def test_a_frame_of_several_has_its_bound_where_a_page_has_none(more_bytes: int, frames: int) -> None:
    """The Python SDK refuses 16 MiB, and a page may have more: each attempt would end at the same page."""
    async with stage(replay_page_bytes=32 * KIB * KIB) as it:
        _, connection, link = await batched(it)
        envelopes = [b'{"type":"text","seq":%d}' % seq for seq in (1, 2)]
        fill = MAX_BATCH_BYTES - sum(map(len, envelopes)) - len("[,]") + more_bytes
        connection.write_messages([envelopes[0][:-1] + b" " * fill + b"}", envelopes[1]])

        assert link.texts == frames
        assert link.seqs() == [1, 2]


async def test_what_its_log_is_read_for_comes_in_one_frame_too_and_a_gap_in_none() -> None:
    """A lost message must not cost a poor connection more frames than its turn."""
    async with stage() as it:
        coalescer, connection, link = await batched(it)
        take_turns(it, 20)
        it.append("lost", is_heard=False)
        take_turns(it, 20)
        await turn(coalescer, 2)

        assert link.seqs() == list(range(1, 42))
        assert link.texts == 2
        assert connection.state is State.LIVE


async def test_a_hook_that_fails_in_a_turn_closes_connections_and_never_the_gateway() -> None:
    """Also where the client takes less than it is sent: what is closing cannot fall behind."""

    class Failing:
        def decorate(self, session: LocalSession, seq: int, frame: bytes) -> bytes:
            for connection in list(session.connections):
                connection.begin_close(CloseCode.SERVER_FAULT, "hook")
            return frame

    async with stage() as it:
        coalescer, connection, link = await batched(it)
        take_turns(it, 10)
        link.stall()
        link.write(b"\x81\x00" * it.hub.shared.limits.unsent_bytes)
        it.hub.shared.tagger = Failing()
        await turn(coalescer)

        assert (connection.state, link.closed) == (State.DRAINING, (CloseCode.SERVER_FAULT, "hook"))
        assert link.seqs() == []
        assert it.measures.messages_delivered == 0
