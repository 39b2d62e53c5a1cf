"""One long poll as the core sees it (ports.Link): what is written is gathered until it is an answer.

Must never hold more than its bound, except a snapshot: that is worth nothing before it is whole. So it is read on only
in one of few rooms, which are those of all polls of a gateway.
"""

import asyncio
from typing import Final

from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode
from gateway.domain.wire.envelopes import Envelopes
from gateway.domain.wire.ws_frames import decode_texts

MAX_BYTES: Final = 256 * 1024
"""Of an answer, as of what a socket may have unsent."""
_TOLD_BEFORE: Final = frozenset({"welcome", "ask_open"})
"""At the beginning these say nothing new to a client that goes on."""


class PollLink:
    """See ports.Link. `something` is set when an answer is worth sending, `full` when nothing more fits."""

    __slots__ = ("_bytes", "_envelopes", "_gone", "_has_room", "_is_beginning", "_is_over", "_limit", "_rooms",
                 "close_as", "cursor", "frames", "full", "is_in_snapshot", "messages", "something")  # fmt: skip

    def __init__(self, limit: int, rooms: asyncio.Semaphore, *, is_further: bool) -> None:
        """`is_further`: the client was told already what is told to everybody at the beginning."""
        self.frames: list[bytes] = []
        self.cursor: str | None = None
        """After the last frame that moved the client."""
        self.messages = 0
        self.close_as: tuple[CloseCode, str] | None = None
        self.is_in_snapshot = False
        self.something = asyncio.Event()
        self.full = asyncio.Event()
        self._limit = limit
        self._bytes = 0
        self._envelopes = Envelopes()
        self._is_beginning = is_further
        self._is_over = False
        self._gone = asyncio.Event()
        self._rooms = rooms
        self._has_room = False

    def begun(self) -> None:
        """What comes from here on is new."""
        self._is_beginning = False

    def write(self, frames: bytes) -> None:
        for data in decode_texts(frames):
            if self._is_over:
                return
            envelope = self._envelopes.read(data)
            if self.messages and self.messages + envelope.messages > self._limit:
                self._finish()
                return
            self.frames.append(envelope.data)
            self.messages += envelope.messages
            self._bytes += len(envelope.data)
            if envelope.cursor is not None:
                self.cursor = envelope.cursor
            if envelope.kind != "welcome" and not (self._is_beginning and envelope.kind in _TOLD_BEFORE):
                self.something.set()
            if envelope.kind == "snapshot" or envelope.messages:
                self.is_in_snapshot = envelope.is_part
            if self.messages >= self._limit or (self._bytes >= MAX_BYTES and not self.is_in_snapshot):
                self._finish()

    def unsent_bytes(self) -> int:
        return self._bytes if self._is_over else 0

    def is_clear(self) -> bool:
        return not self.unsent_bytes()

    async def drained(self) -> None:
        """Nothing more of the log is read before."""
        if self._bytes >= MAX_BYTES and not self._is_over and not self._has_room:
            await self._rooms.acquire()
            if self._gone.is_set():
                self._rooms.release()
            else:
                self._has_room = True
        if self._is_over:
            await self._gone.wait()

    def ping(self, nonce: bytes) -> None:
        """The answer is all that the client waits for."""

    def idle_seconds(self) -> float | None:
        return 0.0  # it need not show life: it waits for less than a minute

    def rtt_seconds(self) -> float | None:
        return None  # no poll lasts long enough to be judged

    def close(self, code: CloseCode, reason: str) -> None:
        if self.close_as is None and not self._gone.is_set():
            self.close_as = code, reason or CLOSE_RULES[code].meaning
            self._finish()

    def look(self) -> None:
        """Something arrived, or the connection ended: who waits for an answer sends nothing."""
        self._finish()

    def end(self) -> None:
        """Idempotent."""
        self._finish()
        self._gone.set()
        if self._has_room:
            self._has_room = False
            self._rooms.release()

    def _finish(self) -> None:
        self._is_over = True
        self.something.set()
        self.full.set()


__all__ = ["MAX_BYTES", "PollLink"]
