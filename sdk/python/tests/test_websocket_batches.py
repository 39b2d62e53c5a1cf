"""Several messages in one WebSocket frame (`batch=1`) are what they were one by one, whatever is wrong with one."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from relayrouter.channel import Circumstances
from relayrouter.messages import Frame, decode_frames
from relayrouter.options import Timing
from relayrouter.websocket import WebSocketChannel

from sdk.python.tests.frame_texts import control, delta, end, gap, message, start, welcome
from sdk.python.tests.scripted import Scripted, cut_after, read, saying, scripted, session_of


def several(*frames: str) -> str:
    return f"[{','.join(frames)}]"


@pytest.mark.parametrize("bad", ["7", "[]", "null", '{"type":"text"}', '{"type":"text","seq":3,"first_seq":4}'])
async def test_what_stands_before_a_bad_one_counts_and_the_rest_comes_again(bad: str) -> None:
    """The cursor of the next attempt is that of the last good one."""
    async with (
        scripted(
            saying(welcome(0), several(start(1), delta(2, "a", 0), bad, delta(3, "b", 1))),
            saying(welcome(2), several(delta(3, "b", 1), end(4, "ab"))),
        ) as server,
        session_of(server, from_="start") as session,
    ):
        messages = await read(session, 4)

    assert [m.seq for m in messages] == [1, 2, 3, 4]
    assert server.asked("ws")[1]["cursor"] == "e1.f1.2"


async def test_repeats_overlaps_gaps_and_empty_ones_are_those_of_single_frames() -> None:
    """Within one frame and from one to the next."""
    async with (
        scripted(
            saying(
                welcome(0),
                "[]",
                several(start(1), start(1), delta(2, "a", 0)),
                several(delta(4, "abc", 0, first_seq=2), delta(3, "b", 1), gap(5, 6, "evicted", "e1.f1.6")),
                several(gap(5, 6, "evicted", "e1.f1.6"), delta(7, "d", 3)),
            )
        ) as server,
        session_of(server, from_="start") as session,
    ):
        messages = await read(session, 5)

    assert [(m.kind, m.seq, m.text) for m in messages] == [
        ("run_start", 1, ""), ("delta", 2, "a"), ("delta", 4, "bc"), ("gap", None, ""), ("delta", 7, "d"),
    ]  # fmt: skip


async def test_a_fork_between_two_of_a_frame_drops_nothing_and_repeats_nothing() -> None:
    forked = control("forked", cursor="e1.f2.2", base=2)
    async with (
        scripted(
            saying(welcome(0), several(start(1), delta(2, "a", 0), forked, delta(3, "b", 1))),
            saying(welcome(3, "e1.f2"), delta(4, "c", 2)),
        ) as server,
        session_of(server, from_="start") as session,
    ):
        messages = await read(session, 3)

    assert [m.seq for m in messages] == [1, 2, 3]


async def test_a_link_that_breaks_behind_a_frame_of_several_loses_none_of_it() -> None:
    async with (
        scripted(
            cut_after(welcome(0), several(start(1), *(delta(seq, "x", seq - 2) for seq in range(2, 200)))),
            saying(welcome(199), end(200, "x" * 198)),
        ) as server,
        session_of(server, from_="start") as session,
    ):
        messages = await read(session, 200)

    assert [m.seq for m in messages] == list(range(1, 201))
    assert server.asked("ws")[1]["cursor"] == "e1.f1.199"


async def test_one_that_is_handed_out_late_is_a_sign_of_life_like_a_frame_of_its_own() -> None:
    """Or a link dies while its application takes its time over one frame, the answer to our question behind it."""
    now = [100.0]
    async with scripted(saying(several(start(1), delta(2, "a", 0)))) as server, aiohttp.ClientSession() as client:
        channel = WebSocketChannel(_circumstances(server, client, now), {"client": "me"})
        assert await channel.open() is None
        first = await channel.receive()
        now[0] += 7
        second = await channel.receive()
        heard_at = channel.liveness.heard_at
        await channel.close()

    assert [isinstance(frame, Frame) and frame.seq for frame in (first, second)] == [1, 2]
    assert heard_at == 107.0


def _circumstances(server: Scripted, client: aiohttp.ClientSession, now: list[float]) -> Circumstances:
    http = SimpleNamespace(client=client, base=server.url, session="s", credentials=SimpleNamespace(headers=dict))

    async def room() -> None: ...

    return Circumstances(
        cast("Any", http), Timing(), lambda: now[0], lambda: now[0], lambda _name, what: asyncio.create_task(what),
        lambda _: None, lambda _: None, lambda: None, room, lambda: None, None, None,
    )  # fmt: skip


class Counted(str):
    """A frame that counts how often it is looked at as a whole."""

    __slots__ = ()
    encodings = 0

    def encode(self, *args: Any, **kwargs: Any) -> bytes:
        Counted.encodings += 1
        return super().encode(*args, **kwargs)


def test_a_frame_of_many_is_measured_once() -> None:
    """A page of a thousand, each measured by the whole, took as long as a hundred pages."""
    raw = Counted(several(*(message(seq, {"kind": "data"}) for seq in range(1, 1_001))))

    assert len(list(decode_frames(raw))) == 1_000
    assert Counted.encodings == 1
