"""One raw socket whose every frame is written down with its time: what a gateway really did to a client, and when."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import jwt

from loadtest.wire import Broken, Frame, Op, WebSocket

SECRET = "a secret of more than thirty-two bytes, for tests only"
KEYS = f'[{{"kid": "k", "algorithm": "HS256", "secret": "{SECRET}"}}]'
WITH_TOKENS = {"auth__mode": "jwt", "auth__keys": KEYS}
"""Settings of a gateway that knows `token`s."""


def token(user: str = "ann", *, ttl_seconds: float = 600, scope: str = "subscribe publish", **claims: Any) -> str:
    now = time.time()
    default = {"sub": user, "sessions": ["*"], "scope": scope, "iat": int(now), "exp": now + ttl_seconds}
    return jwt.encode({**default, **claims}, SECRET, "HS256", {"kid": "k"})


@dataclass
class WatchedSocket:
    ws: WebSocket
    answers_pings: bool
    answers_close: bool
    opened_at: float = field(default_factory=time.monotonic)
    frames: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    pings: list[bytes] = field(default_factory=list)
    close: Frame | None = None
    ended_at: float | None = None
    """When our peer's close frame came, or the connection broke."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def read(self) -> None:
        """Until the end."""
        with suppress(Broken):
            while True:
                for frame in await self.ws.frames():
                    self._take(frame)
                self._changed.set()
        self._note_end()

    def _take(self, frame: Frame) -> None:
        match frame.op:
            case Op.TEXT:
                self.frames.append((time.monotonic(), json.loads(frame.payload)))
            case Op.PING:
                self.pings.append(frame.payload)
                if self.answers_pings:
                    self.ws.send(Op.PONG, frame.payload)
            case Op.CLOSE if self.close is None:
                self.close = frame
                self._note_end()
                if self.answers_close:
                    self.ws.send(Op.CLOSE, frame.payload[:2])
            case _:
                pass

    def _note_end(self) -> None:
        if self.ended_at is None:
            self.ended_at = time.monotonic()
        self._changed.set()

    async def until(self, what: Callable[["WatchedSocket"], Any], seconds: float) -> float:
        """Seconds that it took. AssertionError when it did not come."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                while not what(self):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {seconds} s; {self.kinds()}, close {self.close}") from None
        return time.monotonic() - began

    async def until_closed(self, seconds: float) -> tuple[int, str]:
        await self.until(lambda it: it.ended_at is not None, seconds)
        assert self.close is not None, "the connection ended without a close frame"
        return self.close.close_code, self.close.close_reason

    def control(self, kind: str) -> list[dict[str, Any]]:
        return [f["payload"] for _, f in self.frames if f["type"] == "control" and f["payload"]["kind"] == kind]

    def kinds(self) -> list[str]:
        return [frame["payload"]["kind"] for _, frame in self.frames]

    def texts(self) -> list[str]:
        return [frame["payload"].get("text", "") for _, frame in self.frames if frame["type"] == "text"]

    def send(self, **payload: Any) -> None:
        self.ws.send_text(json.dumps({"type": "control", "payload": payload}))


@asynccontextmanager
async def watch(
    url: str,
    session: str = "s",
    client: str = "c",
    *,
    bearer: str = "",
    answers_pings: bool = True,
    answers_close: bool = True,
    **query: Any,
) -> AsyncIterator[WatchedSocket]:
    """Welcomed; gone at the end of the block."""
    path = f"/v1/sessions/{session}/ws?{urlencode({'client': client, **query})}"
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    watched = WatchedSocket(await WebSocket.open(url, path, headers=headers), answers_pings, answers_close)
    reading = asyncio.create_task(watched.read())
    try:
        await watched.until(lambda it: it.control("welcome") or it.ended_at, 5)
        yield watched
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        watched.ws.reset()


__all__ = ["WITH_TOKENS", "WatchedSocket", "token", "watch"]
