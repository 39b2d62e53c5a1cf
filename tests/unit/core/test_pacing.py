"""A13: who comes again and again gets small pages with pauses and no extras, and every message in order."""

import asyncio

import pytest

from gateway.core.pacing import (
    LONGEST_SECONDS,
    PAGE_BYTES,
    PAUSE_SECONDS,
    STABLE_SECONDS,
    Pacing,
    first_of,
    takes_extras,
)
from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.entry import LogEntry
from gateway.ports import Page
from tests.integration.event_source import seqs_of
from tests.unit.core.stage import settle, stage

LOG = LogState("e", (Fork("f", 0),), 9, 0)


def page(*sizes: int) -> Page:
    return Page(LOG, tuple(LogEntry(seq, b"x", b"", None, 0, b"." * size) for seq, size in enumerate(sizes, 1)))


@pytest.mark.parametrize(
    ("sizes", "kept"), [((), 0), ((5,), 1), ((500,), 1), ((50, 50), 2), ((50, 51), 1), ((30, 30, 30, 30), 3)]
)
def test_the_first_entries_that_fit_and_at_least_one(sizes: tuple[int, ...], kept: int) -> None:
    assert len(first_of(page(*sizes), 100).entries) == kept


def test_it_is_over_when_it_has_been_live_for_a_while() -> None:
    pacing = Pacing(100.0)
    pacing.live(103.0)
    pacing.live(112.0)  # only the first time counts

    assert not pacing.is_over(103 + STABLE_SECONDS - 0.1)
    assert pacing.is_over(103 + STABLE_SECONDS)


def test_who_never_catches_up_is_not_paced_for_ever() -> None:
    pacing = Pacing(100.0)

    assert not pacing.is_over(100 + LONGEST_SECONDS - 0.1)
    assert pacing.is_over(100 + LONGEST_SECONDS)


@pytest.mark.looptime
async def test_a_paced_replay_comes_in_small_pages_and_in_order() -> None:
    async with stage() as it:
        it.append(*("x" * 1_000 for _ in range(60)))
        connection = it.make("c1")
        connection.pacing = Pacing(it.now[0])
        claimed = await it.claim(connection, start=True)
        link = it.open(connection, claimed)

        assert 0 < connection.sent_seq < 60
        assert connection.sent_bytes < 2 * PAGE_BYTES
        assert not takes_extras(connection)
        for _ in range(20):
            await asyncio.sleep(PAUSE_SECONDS)
            await settle()

        assert connection.is_live
        assert seqs_of(frame for frame in link.frames if frame["type"] == "text") == list(range(1, 61))
        it.now[0] += STABLE_SECONDS
        assert takes_extras(connection)
