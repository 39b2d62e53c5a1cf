"""The second rung: server-sent events over a plain GET; what the user says goes by POST."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass

import aiohttp

from relayrouter.channel import Channel, Circumstances
from relayrouter.endings import After, Ending, broken, closed, refused
from relayrouter.errors import ProtocolError
from relayrouter.http import TRANSPORT_ERRORS, read_answer, session_url
from relayrouter.messages import Frame, decode_frame
from relayrouter.states import ChannelKind

MAX_EVENT_BYTES = 16 * 1024 * 1024
_COMMENT_SECONDS = 15.0
"""The server says something at least so often."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    event: str
    data: str
    ident: str


class SseParser:
    """Bytes, however they are cut -> events. Lines end with CR, LF or CRLF and with nothing else (S05, S06)."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._is_first = True
        self._ends_with_cr = False
        self._event = ""
        self._ident = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> list[SseEvent]:
        """Raises ProtocolError above MAX_EVENT_BYTES."""
        if self._ends_with_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._ends_with_cr = data.endswith(b"\r")
        self._rest += data
        if self._is_first:
            if len(self._rest) < 3 and b"\xef\xbb\xbf".startswith(bytes(self._rest)):
                return []
            if self._rest.startswith(b"\xef\xbb\xbf"):
                del self._rest[:3]
            self._is_first = False
        *lines, rest = bytes(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(rest)
        events = [event for line in lines if (event := self._line(line)) is not None]
        if len(self._rest) + self._data_bytes > MAX_EVENT_BYTES:
            raise ProtocolError("an event that never ends", retryable=True)
        return events

    def _line(self, line: bytes) -> SseEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
                self._data_bytes += len(value) + 1
            case b"event":
                self._event = value.decode("utf-8", "replace")
            case b"id" if b"\0" not in value:
                self._ident = value.decode("utf-8", "replace")
            case _:
                pass  # comments, `retry` (our own backoff is better), and what is not known
        return None

    def _dispatch(self) -> SseEvent | None:
        event, self._event = self._event or "message", ""
        data, self._data, self._data_bytes = self._data, [], 0
        return SseEvent(event, b"\n".join(data).decode("utf-8", "replace"), self._ident) if data else None


class SseChannel(Channel):
    kind = ChannelKind.SSE

    def __init__(self, about: Circumstances, query: dict[str, str]) -> None:
        super().__init__(about, query | {"sdk": "1"})
        self._response: aiohttp.ClientResponse | None = None
        self._parser = SseParser()
        self._events: deque[SseEvent] = deque()

    async def open(self) -> Ending | None:
        http = self._about.http
        headers = http.credentials.headers() | {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        try:
            response = await http.client.get(
                session_url(http.base, http.session, "events", self._query),
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._about.timing.connect_timeout),
            )
        except TRANSPORT_ERRORS:
            return await self.why_not()
        self.was_answered = True
        if response.status == 200 and response.content_type == "text/event-stream":
            self._response = response
            return None
        try:
            answer = await read_answer(response)
        except TRANSPORT_ERRORS:
            return broken("the answer broke off", is_transport=True)
        finally:
            response.close()
        return refused(answer.status, answer.body, answer.after_seconds)

    async def receive(self) -> Frame | Ending:
        while self._response is not None and self._ended is None:
            if self._events:
                event = self._events.popleft()
                if event.event == "close":
                    return self._end(_close_of(event))
                if event.data:
                    return decode_frame(event.data)
                continue
            try:
                async with asyncio.timeout(self._silence_seconds()):
                    data = await self._response.content.readany()
            except TimeoutError:
                return self._end(Ending(After.SILENT, "the stream fell silent"))
            except (aiohttp.ClientError, OSError):
                return self._end(broken("the stream broke"))
            if not data:
                return self._end(broken("the stream ended"))
            self.liveness.heard(self._about.clock())
            self._events.extend(self._parser.feed(data))
        return self._end(broken("the channel was left"))

    def probe(self) -> None:
        """A stream cannot be asked: what was silent is replaced by a new one, unless the answer to that is faster."""
        self._about.start("probe", self._look())

    async def close(self) -> None:
        self.detach()

    def detach(self) -> None:
        self._end(broken("detached"))
        if self._response is not None:
            self._response.close()

    async def _look(self) -> None:
        """Silence for a whole comment interval from here on is death; nothing less can be said."""
        heard_before = self.liveness.heard_at
        await asyncio.sleep(self._about.timing.probe_timeout)
        if self._ended is None and self.liveness.heard_at == heard_before:
            self._end(Ending(After.AT_ONCE, "the stream said nothing after a probe"))
            if self._response is not None:
                self._response.close()

    def _silence_seconds(self) -> float:
        interval = max(self._about.heartbeat_seconds or 0.0, _COMMENT_SECONDS)
        return interval + self._about.timing.probe_timeout

    def _end(self, ending: Ending) -> Ending:
        if self._ended is None:
            self._ended = ending
        return self._ended


def _close_of(event: SseEvent) -> Ending:
    try:
        value = json.loads(event.data)
        return closed(int(value["code"]), str(value.get("reason") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return broken("the stream was closed")


__all__ = ["MAX_EVENT_BYTES", "SseChannel", "SseEvent", "SseParser"]
