"""A client that takes media, on a raw socket with its own reading of the header: nothing of the gateway's code."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

import aiohttp

from loadtest.plain_http import ask_once
from loadtest.wire import Frame, Op, WebSocket

HEADER = struct.Struct("!BBBBBIQ")
AUDIO, VIDEO = 1, 2
KEY, DROPPABLE, END = 1, 2, 4


class Got(NamedTuple):
    type: int
    flags: int
    source: str
    stream: str
    sequence: int
    payload: bytes


def media(
    kind: int, sequence: int, payload: bytes = b"x", *, flags: int = 0, stream: str = "cam", source: str = ""
) -> bytes:
    names = source.encode(), stream.encode()
    head = HEADER.pack(1, kind, flags, len(names[1]), len(names[0]), sequence, 1_000 + sequence)
    return b"".join((head, *names, payload))


def records(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def read(data: bytes) -> Got:
    version, kind, flags, stream_bytes, source_bytes, sequence, _ = HEADER.unpack_from(data)
    assert version == 1
    source_end = HEADER.size + source_bytes
    end = source_end + stream_bytes
    return Got(
        kind, flags, data[HEADER.size : source_end].decode(), data[source_end:end].decode(), sequence, data[end:]
    )


class MediaClient:
    """Reads all the time, unless `pause`. What came is in `media`, `controls` and `texts`, and in order in `order`."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.bytes_per_second = 0
        """0: as fast as it comes."""
        self.order: list[str] = []
        self.media: list[Got] = []
        self.controls: list[dict[str, Any]] = []
        self.texts: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str, session: str = "s", *, receive_buffer_bytes: int = 0, **query: str) -> Self:
        words = "&".join(f"{name}={value}" for name, value in query.items())
        path = f"/v1/sessions/{session}/ws?{words}"
        client = cls(await WebSocket.open(url, path, receive_buffer_bytes=receive_buffer_bytes))
        client._task = asyncio.create_task(client._run())
        await client.until(lambda: client.kinds("welcome"))
        return client

    async def _run(self) -> None:
        while True:
            await self._may_read.wait()
            before = self.socket.bytes_rcvd
            for frame in await self.socket.frames():
                self._take(frame)
            self._changed.set()
            if self.bytes_per_second:
                await asyncio.sleep((self.socket.bytes_rcvd - before) / self.bytes_per_second)

    def _take(self, frame: Frame) -> None:
        match frame.op:
            case Op.PING:
                self.socket.send(Op.PONG, frame.payload)
            case Op.BINARY:
                self.media.append(read(frame.payload))
                self.order.append("media")
            case Op.TEXT:
                message = json.loads(frame.payload)
                (self.controls if message["type"] == "control" else self.texts).append(message)
                self.order.append(message["type"])

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [frame["payload"] for frame in self.controls if frame["payload"]["kind"] == kind]

    @property
    def dropped(self) -> int:
        return sum(payload["count"] for payload in self.kinds("media_dropped"))

    def pause(self) -> None:
        """Read nothing more, after the read that waits."""
        self._may_read.clear()

    def go_on(self) -> None:
        self._may_read.set()

    def send(self, data: bytes) -> None:
        self.socket.send(Op.BINARY, data)

    async def until(self, is_so: Any, seconds: float = 20) -> None:
        async with asyncio.timeout(seconds):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.socket.reset()


async def post(url: str, stream: str, query: str, body: bytes, session: str = "s") -> tuple[int, dict[str, Any]]:
    """Status and body of one request for media, its body in pieces of odd length."""

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 7_777):
            yield body[start : start + 7_777]

    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/sessions/{session}/media/{stream}?{query}", data=pieces()) as answer,
    ):
        return answer.status, await answer.json()


@asynccontextmanager
async def client(url: str, name: str, session: str = "s", **query: Any) -> AsyncIterator[MediaClient]:
    made = await MediaClient.open(url, session, client=name, **query)
    try:
        yield made
    finally:
        await made.end()


async def push(url: str, payload: dict[str, Any], session: str = "s") -> None:
    answer = await ask_once(url, "POST", f"/v1/sessions/{session}/push", {"payload": payload})
    assert answer.status == 200, answer.body
