"""A poll's link: what makes an answer worth sending, what ends it, and what it never holds."""

import asyncio

import pytest

from gateway.adapters.http.poll_link import MAX_BYTES, PollLink
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.frames import control_frame
from gateway.domain.wire.ws_frames import encode_text


def control(kind: str, **fields: str) -> bytes:
    return encode_text(control_frame("s", 1, {"kind": kind, **fields}))


def text(seq: int, size: int = 1, first_seq: int | None = None) -> bytes:
    first = b"" if first_seq is None else b'"first_seq":%d,' % first_seq
    return encode_text(b'{"type":"text",%b"seq":%d,"timestamp":1,"payload":{"text":"%b"}}' % (first, seq, b"x" * size))


def link(limit: int = 100, *, is_further: bool = False, rooms: asyncio.Semaphore | None = None) -> PollLink:
    made = PollLink(limit, rooms or asyncio.Semaphore(1), is_further=is_further)
    made.write(control("welcome", cursor="e.f.0", resumed="full"))
    return made


def test_a_welcome_alone_is_nothing_to_answer() -> None:
    assert not link().something.is_set()


@pytest.mark.parametrize("kind", ["gap", "snapshot", "reconnect_later", "expiring", "state", "ask_open", "superseded"])
def test_any_other_frame_is(kind: str) -> None:
    it = link()
    it.write(control(kind))

    assert it.something.is_set()


def test_what_was_told_before_is_no_reason_until_it_has_begun() -> None:
    it = link(is_further=True)
    it.write(control("ask_open"))
    was_something = it.something.is_set()
    it.begun()
    it.write(control("ask_open"))

    assert (was_something, it.something.is_set()) == (False, True)


@pytest.mark.parametrize(("count", "is_full"), [(2, False), (3, True), (4, True)])
def test_it_is_full_at_its_limit_and_takes_no_more(count: int, is_full: bool) -> None:
    it = link(limit=3)
    for seq in range(1, count + 1):
        it.write(text(seq))

    assert it.full.is_set() is is_full
    assert it.messages == min(count, 3)
    assert it.cursor == f"e.f.{min(count, 3)}"


def test_a_merged_frame_counts_as_its_messages_and_waits_for_the_next_poll() -> None:
    it = link(limit=3)
    it.write(text(2, first_seq=1) + text(5, first_seq=3) + text(6))

    assert (it.messages, it.cursor, it.full.is_set()) == (2, "e.f.2", True)


def test_the_first_frame_is_taken_however_many_it_stands_for() -> None:
    """Else no poll would ever get beyond it."""
    it = link(limit=3)
    it.write(text(9, first_seq=1))

    assert (it.messages, it.cursor, it.full.is_set()) == (9, "e.f.9", True)


async def test_it_holds_no_more_than_its_bytes() -> None:
    it = link(limit=1_000)
    for seq in range(1, 60):
        it.write(text(seq, 10_000))

    assert MAX_BYTES <= it.unsent_bytes() < MAX_BYTES + 11_000
    waiting = asyncio.ensure_future(it.drained())
    await asyncio.sleep(0)
    assert not waiting.done()  # nobody reads on for it
    it.end()
    await waiting


def test_a_snapshot_is_taken_whole() -> None:
    it = link()
    for _ in range(60):
        it.write(control("snapshot", text="x" * 10_000))
    was_full = it.full.is_set()
    it.write(control("snapshot", text="", cursor="e.f.40"))

    assert (was_full, it.full.is_set(), it.is_in_snapshot, it.cursor) == (False, True, False, "e.f.40")


def test_the_first_close_is_the_one_that_is_told() -> None:
    it = link()
    it.close(CloseCode.SUPERSEDED, "superseded")
    it.close(CloseCode.RESTART, "drain")

    assert it.close_as == (CloseCode.SUPERSEDED, "superseded")
    assert it.full.is_set()


def test_after_its_end_a_close_changes_nothing() -> None:
    it = link()
    it.end()
    it.close(CloseCode.RESTART, "drain")

    assert it.close_as is None


# ---- snapshots -----------------------------------------------------------------------------------------------------


def large(rooms: asyncio.Semaphore) -> PollLink:
    it = link(rooms=rooms)
    it.write(control("snapshot", text="x" * MAX_BYTES))
    return it


async def test_snapshots_above_the_bound_are_read_on_in_their_turn() -> None:
    rooms = asyncio.Semaphore(1)
    one, two = large(rooms), large(rooms)
    await one.drained()
    waiting = asyncio.ensure_future(two.drained())
    await asyncio.sleep(0)
    had_to_wait = not waiting.done()
    await one.drained()  # its next page
    one.end()
    await waiting

    assert had_to_wait


async def test_a_poll_that_ends_before_its_turn_leaves_the_room_to_others() -> None:
    rooms = asyncio.Semaphore(1)
    one, two = large(rooms), large(rooms)
    await one.drained()
    waiting = asyncio.ensure_future(two.drained())
    await asyncio.sleep(0)
    two.end()
    one.end()
    await waiting

    assert not rooms.locked()


async def test_what_fits_needs_no_turn() -> None:
    it = link(rooms=asyncio.Semaphore(0))
    it.write(control("snapshot", text="x"))

    await it.drained()
