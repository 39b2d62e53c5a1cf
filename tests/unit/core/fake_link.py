"""A client's socket in memory, and the client behind it, who keeps the rules of protocol.md 1."""

import asyncio
import json
from typing import Any

from gateway.domain.wire.close_codes import CloseCode


class FakeLink:
    """Takes everything at once, until `stall`."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self.media: list[bytes] = []
        """Payloads of binary frames."""
        self.texts = 0
        """WebSocket text frames; `frames` has the envelopes in them."""
        self.writes = 0
        self.closed: tuple[CloseCode, str] | None = None
        self.pings: list[bytes] = []
        self.kernel_rtt_seconds: float | None = None
        self._waiting = b""
        self._is_stalled = False
        self._room = asyncio.Event()
        self._room.set()

    # ---- ports.Link ------------------------------------------------------------------------------------------

    def write(self, frames: bytes) -> None:
        if self.closed is not None:
            return
        self.writes += 1
        self._waiting += frames
        if not self._is_stalled:
            self.take(len(self._waiting))

    def unsent_bytes(self) -> int:
        return len(self._waiting)

    def is_clear(self) -> bool:
        return not self.unsent_bytes()

    async def drained(self) -> None:
        await self._room.wait()

    def ping(self, nonce: bytes) -> None:
        self.pings.append(nonce)

    def idle_seconds(self) -> float | None:
        return None

    def rtt_seconds(self) -> float | None:
        return self.kernel_rtt_seconds

    def close(self, code: CloseCode, reason: str) -> None:
        if self.closed is None:
            self.closed = code, reason
            self._room.set()

    # ---- the client ------------------------------------------------------------------------------------------

    def stall(self) -> None:
        """The client stops reading."""
        self._is_stalled = True
        self._room.clear()

    def take(self, size: int) -> None:
        """The kernel takes so many bytes; whole frames are read from them."""
        self._taken = getattr(self, "_taken", b"") + self._waiting[:size]
        self._waiting = self._waiting[size:]
        while (frame := self._cut()) is not None:
            if frame:
                content = json.loads(frame)
                self.frames += content if isinstance(content, list) else [content]
                self.texts += 1

    def go_on(self) -> None:
        """The client reads everything again."""
        self._is_stalled = False
        self.take(len(self._waiting))
        self._room.set()

    def _cut(self) -> bytes | None:
        data: bytes = self._taken
        if len(data) < 2:
            return None
        size, start = data[1], 2
        if size == 126:
            size, start = int.from_bytes(data[2:4], "big"), 4
        elif size == 127:
            size, start = int.from_bytes(data[2:10], "big"), 10
        if len(data) < start + size:
            return None
        self._taken = data[start + size :]
        if data[0] == 0x82:
            self.media.append(data[start : start + size])
            return b""
        assert data[0] == 0x81
        return data[start : start + size]

    def kinds(self) -> list[str]:
        """`kind` of control frames, `first-last` of text."""
        return [
            frame["payload"]["kind"]
            if frame["type"] == "control"
            else f"{frame.get('first_seq', frame['seq'])}-{frame['seq']}"
            for frame in self.frames
        ]

    def control(self, kind: str) -> list[dict[str, Any]]:
        return [f["payload"] for f in self.frames if f["type"] == "control" and f["payload"]["kind"] == kind]

    def seqs(self) -> list[int]:
        """Every seq received, in order."""
        return [
            seq
            for frame in self.frames
            if frame["type"] == "text"
            for seq in range(frame.get("first_seq", frame["seq"]), frame["seq"] + 1)
        ]

    def text_bytes_of(self, run: str) -> int:
        return sum(
            len(frame["payload"].get("text", "").encode())
            for frame in self.frames
            if frame["type"] == "text" and frame["payload"].get("run") == run
        )

    def text(self) -> str:
        return "".join(frame["payload"].get("text", "") for frame in self.frames if frame["type"] == "text")


__all__ = ["FakeLink"]
