"""Control ahead of data: with megabytes behind and a slow reader, an answer waits behind the window; and text ahead of
media, which gets what room is left (B2, B10, G7).

Measured in bytes, not in time: what had to be read between the question and its answer.
"""

import asyncio
import base64
import json
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from loadtest.fronts import Front, program
from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from loadtest.wire import Decoder, Op, encode

pytestmark = pytest.mark.fault

ROOM = {"retention__max_bytes": "16 MiB", "retention__max_messages": "10000"}
BEHIND_BYTES = 5_000_000
BYTES_PER_SECOND = 100_000
RECEIVE_BUFFER_BYTES = 16_384
"""SO_RCVBUF of the reader; the kernel doubles it."""
WINDOW_BYTES = 128 * 1024
"""Of a client that acknowledges (limits.unacked_bytes)."""
UNSENT_BYTES = 256 * 1024
"""Of any client (limits.unsent_bytes), in the gateway; the kernel's SO_SNDBUF of 64 KiB, doubled, comes on top."""
KERNEL_BYTES = 2 * 64 * 1024 + 2 * RECEIVE_BUFFER_BYTES
FRAME_BYTES = 50_000
"""The largest one here: a delta of the producer's, which is never cut."""
READS_A_SECOND = 20
READ_BYTES = BYTES_PER_SECOND // READS_A_SECOND
SLACK_BYTES = 8 * 1024
"""What the windows are counted to: marks every 4 KiB, heads of frames."""
MEDIA_WINDOW_BYTES = 64 * 1024
"""media.window_bytes."""
PICTURE_BYTES = 8_000
VIDEO_READS_A_SECOND = 80
"""Where media is measured: its windows are bytes, so the pace only decides how long the test takes."""


class SlowReader:
    """Takes so many bytes a second, acknowledges what it took, and counts."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_acking: bool, reads_a_second: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._decoder = Decoder()
        self._is_acking = is_acking
        self._pause_seconds = 1 / reads_a_second
        self._acked = 0
        self.bytes_rcvd = 0
        self.media_rcvd = 0
        self.seq = 0

    def say(self, payload: dict[str, Any]) -> None:
        self._writer.write(encode(Op.TEXT, json.dumps({"type": "control", "payload": payload}).encode()))

    async def read(self) -> list[dict[str, Any]]:
        """What comes in one read at this pace: control payloads."""
        data = await asyncio.wait_for(self._reader.read(READ_BYTES), 20)
        assert data, "the connection ended"
        self.bytes_rcvd += len(data)
        await asyncio.sleep(self._pause_seconds)
        controls = []
        for frame in self._decoder.feed(data):
            if frame.op is Op.PING:
                self._writer.write(encode(Op.PONG, frame.payload))
            if frame.op is Op.BINARY:
                self.media_rcvd += 1
            if frame.op is Op.TEXT:
                message = json.loads(frame.payload)
                if message["type"] == "control":
                    controls.append(message["payload"])
                else:
                    self.seq = message["seq"]
        if self._is_acking and self.seq > self._acked:
            self._acked = self.seq
            self.say({"kind": "ack", "seq": self.seq})
        return controls

    async def bytes_until(self, is_it: Callable[[dict[str, Any]], bool]) -> int:
        before = self.bytes_rcvd
        while not any(is_it(control) for control in await self.read()):
            assert self.bytes_rcvd - before < BEHIND_BYTES, "it came after everything"
        return self.bytes_rcvd - before


@asynccontextmanager
async def slow_reader(
    url: str, *, is_acking: bool, caps: str = "", reads_a_second: int = READS_A_SECOND
) -> AsyncIterator[SlowReader]:
    where = urlsplit(url)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (where.hostname, where.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=4_096)
    key = base64.b64encode(os.urandom(16)).decode()
    query = f"client=slow&from=start{'&ack=1' if is_acking else ''}{f'&caps={caps}' if caps else ''}"
    writer.write(
        f"GET /v1/sessions/s/ws?{query} HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    try:
        yield SlowReader(reader, writer, is_acking=is_acking, reads_a_second=reads_a_second)
    finally:
        writer.transport.abort()


async def push_megabytes(stage: Stage, gateway: Gateway) -> None:
    publisher = stage.publisher([gateway], "s")
    await publisher.publish({"kind": "run_start", "run": "r"})
    for _ in range(BEHIND_BYTES // 50_000):
        await publisher.publish({"kind": "delta", "run": "r", "text": "word " * 10_000})


async def bytes_behind_answers(stage: Stage, gateway: Gateway, url: str, *, is_acking: bool) -> dict[str, int]:
    """What has to be read before a pong, an `ask_open` of somebody else, and an interrupt's acknowledgement."""
    await push_megabytes(stage, gateway)
    async with slow_reader(url, is_acking=is_acking, caps="video") as reader:
        while reader.bytes_rcvd < 4 * BYTES_PER_SECOND:
            await reader.read()
        waited = {}
        reader.say({"kind": "ping", "id": "p"})
        waited["pong"] = await reader.bytes_until(lambda control: control["kind"] == "pong")
        body = {"ask": "a1", "message": "Go on?", "options": ["yes", "no"]}
        asking = asyncio.create_task(ask_once(gateway.url, "POST", "/v1/sessions/s/asks", body))
        waited["ask_open"] = await reader.bytes_until(lambda control: control["kind"] == "ask_open")
        assert (await asking).status in (200, 201)
        reader.say({"kind": "interrupt", "run": "r", "id": "i"})
        waited["interrupt"] = await reader.bytes_until(lambda control: control.get("id") == "i")
        assert not reader.media_rcvd
    return waited


@pytest.mark.parametrize("is_acking", [True, False], ids=["acking", "plain"])
async def test_answers_wait_behind_the_window_at_most(stage: Stage, is_acking: bool) -> None:
    """Also with video besides: while text waits, all of it is media that waits longer."""
    gateway = await stage.gateway(stage.server().url, **ROOM)

    async with pictures(gateway):
        waited = await bytes_behind_answers(stage, gateway, gateway.url, is_acking=is_acking)

    window = WINDOW_BYTES if is_acking else UNSENT_BYTES + KERNEL_BYTES
    assert all(size <= window + FRAME_BYTES + READ_BYTES + SLACK_BYTES for size in waited.values()), waited


@pytest.mark.skipif(program("nginx") is None, reason="nginx is not installed")
async def test_answers_wait_behind_the_window_through_nginx(stage: Stage, tmp_path: Path) -> None:
    """An acking client's window holds over the whole way, whatever the kernel holds for the proxy."""
    gateways = await stage.start_gateways(3, stage.server().url, **ROOM)
    front = await Front("nginx", gateways, tmp_path / "nginx", {}).start()
    try:
        waited = await bytes_behind_answers(stage, gateways[0], front.url, is_acking=True)
    finally:
        await front.end()

    assert all(size <= WINDOW_BYTES + FRAME_BYTES + READ_BYTES + SLACK_BYTES for size in waited.values()), waited


# ---- media in the mix ------------------------------------------------------------------------------------------


def picture(sequence: int) -> bytes:
    """A key frame of video as a record of a long body (docs/media.md)."""
    frame = struct.pack("!BBBBBIQ", 1, 2, 1, 3, 0, sequence, 0) + b"cam" + bytes(PICTURE_BYTES)
    return len(frame).to_bytes(4, "big") + frame


@asynccontextmanager
async def pictures(gateway: Gateway) -> AsyncIterator[None]:
    """Twice as much video as the reader takes, until the block ends."""

    async def body() -> AsyncIterator[bytes]:
        sequence = 0
        while not is_over.is_set():
            yield picture(sequence)
            sequence += 1
            await asyncio.sleep(PICTURE_BYTES / (2 * VIDEO_READS_A_SECOND * READ_BYTES))

    async def send() -> None:
        url = f"{gateway.url}/v1/sessions/s/media/cam?framed=1"
        async with aiohttp.ClientSession() as http, http.post(url, data=body()) as answer:
            assert answer.status == 200

    is_over = asyncio.Event()
    sending = asyncio.create_task(send())
    try:
        yield
    finally:
        is_over.set()
        await sending


async def waits_behind_media(stage: Stage, gateway: Gateway, url: str) -> tuple[dict[str, int], int]:
    """What has to be read before text, a pong and an `ask_open` while video fills the line; and how many pictures came
    while text came as well."""
    publisher = stage.publisher([gateway], "s")
    await publisher.publish({"kind": "run_start", "run": "r"})
    waited: dict[str, int] = {}
    async with (
        slow_reader(url, is_acking=True, caps="video", reads_a_second=VIDEO_READS_A_SECOND) as reader,
        pictures(gateway),
    ):
        while reader.bytes_rcvd < BYTES_PER_SECOND:
            await reader.read()
        before = reader.media_rcvd
        for number in range(4):
            start, seq = reader.bytes_rcvd, reader.seq
            await publisher.publish({"kind": "delta", "run": "r", "text": "word "})
            while reader.seq == seq:
                await reader.read()
            waited[f"text {number}"] = reader.bytes_rcvd - start
        came = reader.media_rcvd - before
        reader.say({"kind": "ping", "id": "p"})
        waited["pong"] = await reader.bytes_until(lambda control: control["kind"] == "pong")
        body = {"ask": "a1", "message": "Go on?", "options": ["yes", "no"]}
        asking = asyncio.create_task(ask_once(gateway.url, "POST", "/v1/sessions/s/asks", body))
        waited["ask_open"] = await reader.bytes_until(lambda control: control["kind"] == "ask_open")
        await asking
    return waited, came


def may_wait_behind_media(waited: dict[str, int]) -> bool:
    """The window of media, which holds whole pictures, and one that was begun when the question came."""
    return all(size <= MEDIA_WINDOW_BYTES + PICTURE_BYTES + READ_BYTES + SLACK_BYTES for size in waited.values())


async def test_text_waits_behind_the_window_of_media_at_most_and_media_goes_on(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url)

    waited, came = await waits_behind_media(stage, gateway, gateway.url)

    assert may_wait_behind_media(waited), waited
    assert came


@pytest.mark.skipif(program("nginx") is None, reason="nginx is not installed")
async def test_text_waits_behind_the_window_of_media_through_nginx(stage: Stage, tmp_path: Path) -> None:
    """Whatever the proxy could hold: what is on its way is counted where it arrives."""
    gateways = await stage.start_gateways(3, stage.server().url)
    front = await Front("nginx", gateways, tmp_path / "nginx", {}).start()
    try:
        waited, came = await waits_behind_media(stage, gateways[0], front.url)
    finally:
        await front.end()

    assert may_wait_behind_media(waited), waited
    assert came
