"""The third rung: long polls. Each is a connection of its own that takes over from the one before."""

import asyncio
import json
from collections import deque
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

_PACE_SECONDS = 0.1
_PACE_MAX_SECONDS = 5.0
"""Between polls that are answered before their time with nothing new, doubling."""


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
        self._is_paused = self._is_held = False
        self._may_ask = asyncio.Event()
        self._may_ask.set()
        self._is_idle = asyncio.Event()
        self._empty_in_a_row = 0

    async def open(self) -> Ending | None:
        return await self._poll(_FIRST_WAIT_SECONDS)

    async def receive(self) -> Frame | Ending:
        while self._ended is None:
            if self._frames:
                return self._frames.popleft()
            if self._close is not None:
                return self._end(self._close)
            self._is_idle.set()
            await self._about.room()
            if self._empty_in_a_row:
                await asyncio.sleep(min(_PACE_MAX_SECONDS, _PACE_SECONDS * 2 ** min(self._empty_in_a_row - 1, 10)))
            await self._may_ask.wait()
            self._is_idle.clear()
            self._since = self._about.position() or self._since
            wait = _FIRST_WAIT_SECONDS if self._is_more else self._wait_seconds()
            if (ending := await self._poll(wait)) is not None:
                return self._end(ending)
        return self._end(broken("the channel was left"))

    def pause(self) -> None:
        """No request goes out until `go_on`; between two polls the gateway knows no connection to pause."""
        self._is_paused = True
        self._steer()

    def go_on(self) -> None:
        self._is_paused = False
        self._steer()

    async def make_way(self) -> None:
        """The connection of a poll that is on its way is not known: only between two can one take over from it."""
        self._is_held = True
        self._steer()
        await self._is_idle.wait()

    def stay(self) -> None:
        self._is_held = False
        self._steer()

    async def close(self) -> None:
        self.detach()

    def detach(self) -> None:
        self._end(broken("detached"))

    def _wait_seconds(self) -> float:
        """No longer than until a better channel is tried, which waits for the answer."""
        move_seconds = self._about.next_move_seconds()
        wait = self._about.timing.poll_wait
        return wait if move_seconds is None else round(max(_FIRST_WAIT_SECONDS, min(wait, move_seconds)), 3)

    def _steer(self) -> None:
        if self._is_paused or self._is_held:
            self._may_ask.clear()
        else:
            self._may_ask.set()

    async def _poll(self, wait_seconds: float) -> Ending | None:
        query = {name: value for name, value in self._query.items() if name not in ("cursor", "replaces", "heartbeat")}
        query |= {"wait": f"{wait_seconds:g}", "limit": str(_LIMIT)}
        if self._since is not None:
            query["since"] = self._since
            query.pop("from", None)
        if self._replaces is not None:
            query["replaces"] = self._replaces
        began = self._about.clock()
        try:
            answer = await self._about.http.get("messages", query, timeout_seconds=wait_seconds + _SLACK_SECONDS)
        except TRANSPORT_ERRORS:
            return await self.why_not()
        self.was_answered = True
        ending = self._take(answer)
        is_empty = all(frame.is_control and frame.kind == "welcome" for frame in self._frames)
        is_early = self._about.clock() - began < 0.9 * wait_seconds
        self._empty_in_a_row = self._empty_in_a_row + 1 if is_empty and is_early else 0
        return ending

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
        self._is_idle.set()
        return self._ended


def _size_of(frame: Any) -> int:
    return len(json.dumps(frame, ensure_ascii=False))


__all__ = ["PollChannel"]
