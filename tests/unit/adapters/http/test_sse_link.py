"""An SSE response's link over a real socket: events as they are written, and one close."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.adapters.http import sse_link
from gateway.adapters.http.link import HIGH_MARK_BYTES
from gateway.adapters.http.sse_events import RelayEvents
from gateway.adapters.http.sse_link import SseLink
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode
from gateway.domain.wire.frames import control_frame
from gateway.domain.wire.ws_frames import encode_text
from tests.integration.event_source import Event, EventParser


@dataclass
class Scene:
    link: SseLink
    transport: asyncio.Transport
    reader: asyncio.StreamReader

    async def events(self, count: int) -> list[Event]:
        """The next so many; what follows them is left."""
        parser, events = EventParser(), list[Event]()
        async with asyncio.timeout(5):
            while len(events) < count:
                events += parser.feed(await self.reader.read(65536))
        return events


class _Drains:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def drain(self) -> None:
        await self._writer.drain()


@asynccontextmanager
async def scene(*, is_chunked: bool = False, close_timeout_seconds: float = 5) -> AsyncIterator[Scene]:
    made: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: made.set_result(writer), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=4096)
    served = await made
    transport: Any = served.transport
    link = SseLink(
        transport,
        _Drains(served),
        RelayEvents(),
        is_chunked=is_chunked,
        user_timeout_seconds=30,
        close_timeout_seconds=close_timeout_seconds,
    )
    try:
        yield Scene(link, transport, reader)
    finally:
        link.end()
        for one in (writer, served):
            one.transport.abort()
        server.close()
        await asyncio.sleep(0)


def control(kind: str, **fields: Any) -> bytes:
    return encode_text(control_frame("s", 1, {"kind": kind, **fields}))


def text(seq: int, size: int = 1) -> bytes:
    return encode_text(b'{"type":"text","seq":%d,"timestamp":1,"payload":{"text":"%b"}}' % (seq, b"x" * size))


async def test_frames_become_events_on_their_line() -> None:
    async with scene() as it:
        it.link.write(control("welcome", cursor="e.f.7", resumed="full") + text(8))
        it.link.write(control("forked", cursor="e.g.8", base=8) + text(9))
        events = await it.events(4)

    assert [(event.name, event.last_id) for event in events] == [
        ("welcome", "e.f.7"), ("message", "e.f.8"), ("forked", "e.g.8"), ("message", "e.g.9"),
    ]  # fmt: skip


async def test_one_write_is_one_chunk() -> None:
    async with scene(is_chunked=True) as it:
        it.link.begin(5)
        it.link.ping(b"")
        data = await it.reader.readexactly(len("a\r\nretry: 5\n\n\r\n4\r\n: \n\n\r\n"))

    assert data == b"a\r\nretry: 5\n\n\r\n4\r\n: \n\n\r\n"


async def test_a_slot_of_a_drain_is_the_browsers_own_retry() -> None:
    async with scene() as it:
        it.link.write(control("reconnect_later", after_ms=740, reason="drain"))
        parser = EventParser()
        (event,) = parser.feed(await it.reader.read(65536))

    assert (event.name, parser.retry_ms) == ("reconnect_later", 740)


@pytest.mark.parametrize(("after_ms", "lowest", "highest"), [(60_000, 55_000, 60_000), (1, 500, 500)])
async def test_a_browser_does_not_wait_twice_for_its_slot(after_ms: int, lowest: int, highest: int) -> None:
    """It counts from the end of its stream, which comes before its slot or after it."""
    async with scene() as it:
        it.link.begin(2_000)
        it.link.write(control("reconnect_later", after_ms=after_ms, reason="drain"))
        await it.events(1)
        it.link.close(CloseCode.RESTART, "drain")
        parser = EventParser()
        parser.feed(await it.reader.read(65536))

    assert lowest <= (parser.retry_ms or 0) <= highest


async def test_the_first_close_counts_and_nothing_follows_it() -> None:
    async with scene() as it:
        it.link.write(control("welcome", cursor="e.f.0", resumed="full"))
        it.link.close(CloseCode.RESTART, "drain")
        it.link.close(CloseCode.SUPERSEDED, "superseded")
        it.link.write(text(1))
        it.link.ping(b"")
        events = await it.events(2)
        assert it.link.ended.is_set()
        it.transport.close()
        assert await it.reader.read() == b""

    assert events[1].json == {"code": 1012, "reason": "drain"}


async def test_a_close_without_a_reason_says_what_its_code_means() -> None:
    async with scene() as it:
        it.link.close(CloseCode.SERVER_FAULT, "")
        (event,) = await it.events(1)

    assert event.json["reason"] == CLOSE_RULES[CloseCode.SERVER_FAULT].meaning


async def test_who_does_not_read_is_seen_in_the_backlog_and_cut_after_the_close() -> None:
    async with scene(close_timeout_seconds=0.05) as it:
        it.link.write(control("welcome", cursor="e.f.0", resumed="full"))
        for seq in range(1, 300):
            it.link.write(text(seq, 20_000))
        assert it.link.unsent_bytes() > HIGH_MARK_BYTES
        waiting = asyncio.ensure_future(it.link.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        it.link.close(CloseCode.UNRESPONSIVE, "stopped_reading")
        async with asyncio.timeout(5):
            await waiting  # the cut lets go who waits
        assert it.transport.is_closing()


async def test_what_arrives_after_the_request_ends_it() -> None:
    async with scene() as it:
        it.link.look()

        assert it.link.ended.is_set()
        assert it.transport.is_closing()


async def test_who_does_not_read_cannot_keep_the_backlog_by_sending() -> None:
    """Its place is given back at once, so its memory must not stay."""
    async with scene(close_timeout_seconds=0.05) as it:
        for seq in range(1, 300):
            it.link.write(text(seq, 20_000))
        waiting = asyncio.ensure_future(it.link.drained())

        it.link.look()
        it.link.end()

        async with asyncio.timeout(5):
            await waiting
        assert not it.link.unsent_bytes()


async def test_after_the_peer_has_gone_nothing_is_written() -> None:
    async with scene() as it:
        it.transport.abort()
        it.link.write(text(1))
        it.link.ping(b"")
        it.link.close(CloseCode.RESTART, "drain")

        assert it.link.idle_seconds() is None


async def test_where_the_kernel_does_not_tell_nobody_is_given_up_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux says when the peer last acknowledged; elsewhere silence would end every stream."""
    monkeypatch.setattr(sse_link, "_TCP_INFO", None)
    async with scene() as it:
        assert it.link.idle_seconds() == 0.0
