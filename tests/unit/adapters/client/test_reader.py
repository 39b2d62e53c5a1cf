"""The reader against scripted servers: it keeps its place through every kind of end, and leaves when it must."""

import asyncio
import random
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.client.endings import SessionEnded
from gateway.adapters.client.frames import Frame
from gateway.adapters.client.reader import ReaderIdentity, ReaderState, ReaderStatus, SessionReader, Start
from gateway.adapters.client.settings import BackoffSettings, ReaderSettings
from gateway.domain.wire.cursor import Cursor
from tests.unit.adapters.client.fake_gateway import FakeGateway, cut_after, fake_gateway, saying, serving
from tests.unit.adapters.client.frame_texts import control, delta, gap, message, welcome

RUN_END = {"kind": "run_end", "run": "r", "reason": "complete"}


def quick(**changes: Any) -> ReaderSettings:
    return ReaderSettings(backoff=BackoffSettings(base_seconds=0.001, max_seconds=0.001), **changes)


def reader_of(*gateways: FakeGateway, start: Start | None = None, **changes: Any) -> SessionReader:
    settings = quick(**changes)
    return SessionReader([g.url for g in gateways], "s", ReaderIdentity(client="me"), start or Start(), settings)


async def read(reader: SessionReader, count: int) -> list[Frame]:
    """The next `count` messages."""
    found: list[Frame] = []
    async with aclosing(reader.frames()) as frames:
        async for frame in frames:
            if not frame.is_control:
                found.append(frame)
            if len(found) == count:
                break
    return found


async def test_it_goes_on_after_its_cursor_on_another_gateway() -> None:
    async with (
        fake_gateway(cut_after(welcome(3), delta(4, "a"), delta(5, "b"))) as first,
        fake_gateway(saying(welcome(5), delta(6, "c"))) as second,
    ):
        reader = reader_of(first, second)
        frames = await read(reader, 3)

    assert [frame.text for frame in frames] == ["a", "b", "c"]
    assert [query.get("cursor") for query in first.queries + second.queries] == [None, "e1.f1.5"]
    assert second.queries[0]["replaces"] == "c1"
    assert reader.tally.connects == 2


async def test_media_goes_to_who_asked_for_it_and_is_no_message() -> None:
    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        await ws.send_str(welcome(2))
        await ws.send_bytes(b"frame")
        await ws.send_str(delta(3, "a"))
        await gateway.hear_all(ws)

    media: list[bytes] = []
    async with fake_gateway(scene) as gateway:
        identity = ReaderIdentity(client="me", capabilities="audio")
        frames = await read(SessionReader([gateway.url], "s", identity, settings=quick(), on_media=media.append), 1)

    assert (media, [frame.text for frame in frames]) == ([b"frame"], ["a"])
    assert gateway.queries[0]["caps"] == "audio"


@pytest.mark.parametrize(
    ("start", "query"),
    [
        (Start(), {}),
        (Start(from_start=True), {"from": "start"}),
        (Start(seq=7), {"last_received_seq": "7"}),
        (Start(cursor=Cursor("e", "f", 2)), {"cursor": "e.f.2"}),
    ],
)
async def test_where_to_begin_is_asked_for_in_the_query(start: Start, query: dict[str, str]) -> None:
    async with fake_gateway(saying(welcome(2), delta(3, "a"))) as gateway:
        await read(reader_of(gateway, start=start), 1)

    assert gateway.queries == [{"client": "me", "ack": "1"} | query]


async def test_an_unreachable_gateway_is_passed_over() -> None:
    async with fake_gateway(saying(welcome(0), delta(1, "a"))) as gateway:
        closed = FakeGateway(url="http://127.0.0.1:1")
        frames = await read(reader_of(closed, gateway), 1)

    assert frames[0].text == "a"


async def test_repeats_are_dropped_and_a_hole_is_asked_for_again() -> None:
    async with fake_gateway(
        saying(welcome(0), delta(1, "a"), delta(1, "a"), delta(4, "d")),
        saying(welcome(1), delta(3, "bc", first_seq=2), delta(4, "d")),
    ) as gateway:
        reader = reader_of(gateway)
        frames = await read(reader, 3)

    assert "".join(frame.text for frame in frames) == "abcd"
    assert gateway.queries[1]["cursor"] == "e1.f1.1"
    assert (reader.tally.repeated, reader.tally.missing, reader.tally.messages) == (1, 0, 4)


async def test_positions_of_gaps_and_forks_are_resumed_from() -> None:
    async with fake_gateway(
        cut_after(
            welcome(0), gap(1, 4, "evicted", "e1.f1.4"), delta(5, "a"), control("forked", cursor="e1.f2.5", base=5)
        ),
        saying(welcome(5, line="e1.f2"), delta(6, "b")),
    ) as gateway:
        await read(reader_of(gateway), 2)

    assert gateway.queries[1]["cursor"] == "e1.f2.5"


async def test_what_was_applied_is_acknowledged_by_bytes() -> None:
    async with fake_gateway(saying(welcome(0), delta(1, "x" * 60), delta(2, "y" * 60), delta(3, "z"))) as gateway:
        await read(reader_of(gateway, ack_bytes=200, ack_seconds=100), 3)

    assert gateway.sent == [{"kind": "ack", "seq": 2}, {"kind": "ack", "seq": 3}]


async def test_what_was_applied_is_acknowledged_in_time() -> None:
    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(delta(1, "a"))
        await gateway.hear(ws)
        await ws.send_str(delta(2, "b"))
        await gateway.hear_all(ws)

    async with fake_gateway(scene) as gateway:
        await read(reader_of(gateway, ack_seconds=0.01), 2)

    assert gateway.sent[0] == {"kind": "ack", "seq": 1}


async def test_a_gateway_that_falls_silent_in_a_run_is_left() -> None:
    async with (
        fake_gateway(saying(welcome(0), delta(1, "a"))) as frozen,
        fake_gateway(saying(welcome(1), delta(2, "b"))) as other,
    ):
        reader = reader_of(frozen, other, quiet_seconds=0.05, answer_seconds=0.1)
        async with asyncio.timeout(5):
            frames = await read(reader, 2)

    assert [frame.text for frame in frames] == ["a", "b"]
    assert {"kind": "ping"} in frozen.sent
    assert "no answer" in reader.status.cause


async def test_a_gateway_that_answers_is_stayed_with_and_measured() -> None:
    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(delta(1, "a"))
        for _ in range(3):
            while await gateway.hear(ws) != {"kind": "ping"}:
                pass
            await ws.send_str(control("pong"))
        await ws.send_str(delta(2, "b"))
        await gateway.hear_all(ws)

    async with fake_gateway(scene) as gateway:
        reader = reader_of(gateway, quiet_seconds=0.02, answer_seconds=2)
        await read(reader, 2)

    assert len(gateway.queries) == 1
    assert reader.status.rtt_seconds is not None
    assert 0 <= reader.status.rtt_seconds < 2


async def test_between_runs_silence_is_less_suspicious() -> None:
    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(message(1, RUN_END))
        await gateway.hear(ws)
        await ws.send_str(delta(2, "b"))
        await gateway.hear_all(ws)

    async with fake_gateway(scene) as gateway:
        await read(reader_of(gateway, quiet_seconds=0.01, idle_quiet_seconds=60, ack_seconds=0.1), 2)

    assert gateway.sent[0] == {"kind": "ack", "seq": 1}


async def test_a_gateway_that_never_says_welcome_is_left() -> None:
    async with fake_gateway(saying(), saying(welcome(0), delta(1, "a"))) as gateway:
        await read(reader_of(gateway, welcome_seconds=0.05), 1)

    assert len(gateway.queries) == 2


async def test_the_servers_ping_is_answered() -> None:
    async def handle(request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        await ws.ping(b"nonce")
        await ws.send_str(welcome(0))
        pong = await ws.receive()
        await ws.send_str(delta(1, f"{pong.type.name} {pong.data.decode()}"))
        await ws.receive()
        return ws

    async with serving(web.get("/v1/sessions/{session}/ws", handle)) as url:
        frames = await read(reader_of(FakeGateway(url=url)), 1)

    assert frames[0].text == "PONG nonce"


@pytest.mark.parametrize("code", [1008, 4403, 4404, 4409])
async def test_final_closes_end_it_with_a_reason(code: int) -> None:
    async with fake_gateway(saying(welcome(0), code=code, reason="because")) as gateway:
        reader = reader_of(gateway)
        with pytest.raises(SessionEnded, match="because") as caught:
            await read(reader, 1)

    assert caught.value.code == code
    assert len(gateway.queries) == 1
    assert reader.status.state is ReaderState.CLOSED


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_final_refusal_of_the_upgrade_is_explained_in_words(status: int) -> None:
    async with fake_gateway(saying(), upgrade_statuses=[status] * 9) as gateway:
        with pytest.raises(SessionEnded, match="the reason in words"):
            await read(reader_of(gateway), 1)

    assert len(gateway.queries) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503])
async def test_a_passing_refusal_of_the_upgrade_is_tried_again(status: int) -> None:
    async with fake_gateway(saying(welcome(0), delta(1, "a")), upgrade_statuses=[status]) as gateway:
        await read(reader_of(gateway), 1)

    assert len(gateway.queries) == 2


async def test_a_refused_token_is_replaced_once() -> None:
    fetched: list[str] = []

    async def new_token() -> str:
        fetched.append(f"t{len(fetched)}")
        return fetched[-1]

    async with fake_gateway(saying(code=4401)) as gateway:
        identity = ReaderIdentity(client="me", token="old", new_token=new_token)
        reader = SessionReader([gateway.url], "s", identity, settings=quick())
        with pytest.raises(SessionEnded):
            await read(reader, 1)

    assert gateway.tokens == ["Bearer old", "Bearer t0"]


async def test_a_slot_is_a_lower_bound_for_the_return() -> None:
    later = control("reconnect_later", after_ms=150, reason="drain")
    waits: list[float] = []

    def note(status: ReaderStatus) -> None:
        if status.state is ReaderState.WAITING:
            waits.append(status.wait_seconds)

    async with fake_gateway(saying(welcome(0), later, code=1012), saying(welcome(0), delta(1, "a"))) as gateway:
        reader = SessionReader([gateway.url], "s", settings=quick(), on_status=note)
        await read(reader, 1)

    assert len(waits) == 1
    assert 0.1 < waits[0] < 0.2
    assert "replaces" not in gateway.queries[1]


async def test_accepting_and_closing_at_once_does_not_reset_the_backoff() -> None:
    waits: list[float] = []

    def note(status: ReaderStatus) -> None:
        if status.state is ReaderState.WAITING:
            waits.append(status.wait_seconds)

    class Ceiling(random.Random):
        def uniform(self, _a: float, b: float) -> float:
            return b

    flapping = [saying(welcome(0), code=1011)] * 6
    async with fake_gateway(*flapping, saying(welcome(0), delta(1, "a"))) as gateway:
        settings = ReaderSettings(backoff=BackoffSettings(base_seconds=0.001, max_seconds=0.016))
        reader = SessionReader([gateway.url], "s", settings=settings, rng=Ceiling(), on_status=note)
        await read(reader, 1)

    assert waits == [0.001, 0.002, 0.004, 0.008, 0.016, 0.016]


async def test_a_frame_that_is_none_is_not_shown_and_the_session_goes_on() -> None:
    async with fake_gateway(saying(welcome(0), "nonsense"), saying(welcome(0), delta(1, "a"))) as gateway:
        frames = await read(reader_of(gateway), 1)

    assert frames[0].text == "a"


async def test_cancelling_it_closes_its_socket() -> None:
    left = asyncio.Event()

    async def scene(ws: web.WebSocketResponse, gateway: FakeGateway) -> None:
        await ws.send_str(welcome(0))
        await gateway.hear_all(ws)
        left.set()

    async with fake_gateway(scene) as gateway:
        reader = reader_of(gateway)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await read(reader, 1)

        async with asyncio.timeout(5):
            await left.wait()

    assert reader.status.state is ReaderState.CLOSED
