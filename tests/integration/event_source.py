"""A small EventSource of our own on raw sockets, after the standard: what a browser sees of the SSE endpoint.

Must never be kinder than a browser: any status but 200 ends it for ever, and it comes back by its own clock.
"""

import asyncio
import codecs
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from loadtest.plain_http import Answer, read_answer_head


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    data: str
    last_id: str

    @property
    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.data)
        return body


class EventParser:
    """The standard's: CR, LF and CRLF end lines, also across chunks; a comment is nothing."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._rest = ""
        self._is_first = True
        self._name = ""
        self._data: list[str] = []
        self.last_id = ""
        self.retry_ms: int | None = None
        self.comments = 0

    def feed(self, chunk: bytes) -> list[Event]:
        text = self._rest + self._decode(chunk)
        if self._is_first and text:
            text, self._is_first = text.removeprefix("\ufeff"), False
        events = []
        while True:
            ends = [at for at in (text.find("\r"), text.find("\n")) if at >= 0]
            if not ends or (text[min(ends)] == "\r" and min(ends) == len(text) - 1):  # a LF may follow
                break
            line, end = text[: min(ends)], min(ends) + 1
            if text[min(ends) : end + 1] == "\r\n":
                end += 1
            text = text[end:]
            if (event := self._line(line)) is not None:
                events.append(event)
        self._rest = text
        return events

    def _line(self, line: str) -> Event | None:
        if not line:
            name, data, self._name, self._data = self._name, self._data, "", []
            return Event(name or "message", "\n".join(data), self.last_id) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "":
                self.comments += 1
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self.last_id = value
            case "retry" if value.isascii() and value.isdigit():
                self.retry_ms = int(value)
        return None


@dataclass(slots=True)
class Stream:
    """One response. `events` grows as it is read."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: Answer
    parser: EventParser = field(default_factory=EventParser)
    events: list[Event] = field(default_factory=list)
    has_ended: bool = False

    async def read(self) -> bool:
        """What comes next. False: the response is over, or was cut."""
        try:
            if self.head.headers.get("transfer-encoding") == "chunked":
                size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
                data = await self.reader.readexactly(size + 2)
                self.has_ended = size == 0
                data = data[:-2]
            else:
                data = await self.reader.read(65536)
        except (EOFError, ConnectionError):
            return False
        self.events += self.parser.feed(data)
        return bool(data)

    async def until(self, wanted: Callable[["Stream"], Any], seconds: float = 15) -> None:
        """Read until it is so. AssertionError when the stream ends before."""
        async with asyncio.timeout(seconds):
            while not wanted(self):
                assert await self.read(), f"it ended: {self.events[-3:]}"

    async def event(self, name: str, seconds: float = 15) -> Event:
        """The first event of this name."""
        await self.until(lambda it: it.named(name), seconds)
        return self.named(name)[0]

    async def to_end(self, seconds: float = 15) -> None:
        async with asyncio.timeout(seconds):
            while await self.read():
                pass

    async def until_seq(self, seq: int, seconds: float = 15) -> None:
        await self.until(lambda it: it.seqs and it.seqs[-1] >= seq, seconds)

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    @property
    def seqs(self) -> list[int]:
        return seqs_of(event.json for event in self.named("message"))

    @property
    def text(self) -> str:
        return "".join(event.json["payload"].get("text", "") for event in self.named("message"))


def seqs_of(frames: Any) -> list[int]:
    """Of text frames; a merged one stands for several."""
    return [seq for frame in frames for seq in range(frame.get("first_seq", frame["seq"]), frame["seq"] + 1)]


@asynccontextmanager
async def streaming(
    url: str, path: str, headers: Mapping[str, str] | None = None, *, version: str = "1.1", receive_bytes: int = 0
) -> AsyncIterator[Stream]:
    """`receive_bytes`: of the socket's buffer, for readers that are slow."""
    stream = await open_stream(url, path, headers, version=version, receive_bytes=receive_bytes)
    try:
        yield stream
    finally:
        stream.writer.transport.abort()


async def open_stream(
    url: str, path: str, headers: Mapping[str, str] | None = None, *, version: str = "1.1", receive_bytes: int = 0
) -> Stream:
    """Raises OSError, EOFError."""
    parts = urlsplit(url)
    options = {"limit": max(receive_bytes, 1024)} if receive_bytes else {"limit": 1 << 20}
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, **options)  # type: ignore[arg-type]
    lines = [f"GET {path} HTTP/{version}", f"Host: {parts.netloc}", "Accept: text/event-stream"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        return Stream(reader, writer, await read_answer_head(reader))
    except BaseException:
        writer.transport.abort()
        raise


class EventSource:
    """A page's: goes round the URLs whenever it was cut, with the last id that it saw."""

    def __init__(self, urls: Sequence[str], path: str, *, retry_ms: int | None = None) -> None:
        """`retry_ms`: instead of what the gateway says, so that tests need not wait."""
        self.urls = list(urls)
        self.path = path
        self.events: list[Event] = []
        self.last_id = ""
        self.attempts = 0
        self.statuses: list[int] = []
        self.retries_ms: list[int | None] = []
        self._retry_ms = retry_ms
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until it is refused for ever, or cancelled."""
        while True:
            url = self.urls[self.attempts % len(self.urls)]
            self.attempts += 1
            headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
            with suppress(OSError, EOFError):
                async with streaming(url, self.path, headers) as stream:
                    self.statuses.append(stream.head.status)
                    if stream.head.status != 200:
                        return
                    stream.parser.last_id = self.last_id
                    while await stream.read():
                        self._take(stream)
                    self.retries_ms.append(stream.parser.retry_ms)
            await asyncio.sleep((self._retry_ms or 50) / 1000)

    def _take(self, stream: Stream) -> None:
        events, stream.events = stream.events, []
        self.events += events
        if events:
            self.last_id = events[-1].last_id
        self._changed.set()

    @property
    def seqs(self) -> list[int]:
        return seqs_of(event.json for event in self.events if event.name == "message")

    async def until_seq(self, seq: int, seconds: float = 25) -> None:
        async with asyncio.timeout(seconds):
            while not self.seqs or self.seqs[-1] < seq:
                self._changed.clear()
                await self._changed.wait()

    def texts(self) -> dict[str, str]:
        """Run -> text of its deltas."""
        parts: dict[str, str] = {}
        for event in self.events:
            payload = event.json["payload"] if event.name == "message" else {}
            if payload.get("kind") == "delta":
                parts[payload["run"]] = parts.get(payload["run"], "") + payload["text"]
        return parts


@asynccontextmanager
async def browsing(source: EventSource) -> AsyncIterator[EventSource]:
    """It runs inside the block."""
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


__all__ = ["Event", "EventParser", "EventSource", "Stream", "browsing", "open_stream", "seqs_of", "streaming"]
