"""The third rung: long polls. Each is a connection of its own that takes over from the one before."""

import asyncio
import json
from collections import deque
from contextlib import suppress
from typing import Any

from relayrouter.channel import Channel, Circumstances
from relayrouter.endings import Ending, broken, closed, refused, unreadable
from relayrouter.errors import ProtocolError
from relayrouter.http import TRANSPORT_ERRORS, Answer
from relayrouter.messages import Frame, read_frame
from relayrouter.states import ChannelKind

_LIMIT = 500
_FIRST_WAIT_SECONDS = 0.05
"""The first answer only says that we are in."""
_SLACK_SECONDS = 10.0
"""Beyond the wait, until an answer is overdue."""


class PollChannel(Channel):
    kind = ChannelKind.POLL

    def __init__(self, about: Circumstances, query: dict[str, str]) -> None:
        query = dict(query)
        super().__init__(about, query | {"sdk": "1"})
        self._replaces = query.get("replaces")
        self._since = query.pop("cursor", None)
        self._frames: deque[Frame] = deque()
        self._close: Ending | None = None
        self._is_more = True
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._held_until = 0.0
        self._hold_changed = asyncio.Event()

    async def open(self) -> Ending | None:
        return await self._poll(_FIRST_WAIT_SECONDS)

    async def receive(self) -> Frame | Ending:
        while self._ended is None:
            if self._frames:
                return self._frames.popleft()
            if self._close is not None:
                return self._end(self._close)
            await self._about.room()
            await self._resumed.wait()
            await self._until_not_held()
            self._since = self._about.position() or self._since
            wait = _FIRST_WAIT_SECONDS if self._is_more else self._about.timing.poll_wait
            if (ending := await self._poll(wait)) is not None:
                return self._end(ending)
        return self._end(broken("the channel was left"))

    def pause(self) -> None:
        """No request goes out until `go_on`; between two polls the gateway knows no connection to pause."""
        self._resumed.clear()

    def go_on(self) -> None:
        self._resumed.set()

    def hold(self, seconds: float) -> None:
        self._held_until = self._about.clock() + seconds if seconds else 0.0
        self._hold_changed.set()

    async def close(self) -> None:
        self.detach()

    def detach(self) -> None:
        self._end(broken("detached"))
        self._resumed.set()
        self.hold(0.0)

    async def _until_not_held(self) -> None:
        """A poll of one that was left meanwhile is cancelled with its reader."""
        while (left := self._held_until - self._about.clock()) > 0:
            self._hold_changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._hold_changed.wait()

    async def _poll(self, wait_seconds: float) -> Ending | None:
        query = {name: value for name, value in self._query.items() if name not in ("cursor", "replaces", "heartbeat")}
        query |= {"wait": f"{wait_seconds:g}", "limit": str(_LIMIT)}
        if self._since is not None:
            query["since"] = self._since
            query.pop("from", None)
        if self._replaces is not None:
            query["replaces"] = self._replaces
        try:
            answer = await self._about.http.get("messages", query, timeout_seconds=wait_seconds + _SLACK_SECONDS)
        except TRANSPORT_ERRORS:
            return broken("no answer to a poll", is_transport=True)
        return self._take(answer)

    def _take(self, answer: Answer) -> Ending | None:
        body = answer.body
        if answer.status != 200 or body is None:
            return refused(answer.status, body, answer.after_seconds)
        frames = body.get("frames")
        if not isinstance(frames, list):
            return broken("an answer that is no gateway's", is_transport=True)
        self.liveness.heard(self._about.clock())
        try:
            self._frames.extend(read_frame(frame, _size_of(frame)) for frame in frames)
        except ProtocolError as exc:
            return unreadable(exc)
        connection, cursor, close = body.get("connection"), body.get("cursor"), body.get("close")
        self._replaces = connection if isinstance(connection, str) else None
        self._since = cursor if isinstance(cursor, str) else self._since
        self._is_more = body.get("more") is True
        if isinstance(close, dict) and isinstance(close.get("code"), int):
            self._close = closed(close["code"], str(close.get("reason") or ""))
        return None

    def _end(self, ending: Ending) -> Ending:
        if self._ended is None:
            self._ended = ending
        return self._ended


def _size_of(frame: Any) -> int:
    return len(json.dumps(frame, ensure_ascii=False))


__all__ = ["PollChannel"]
