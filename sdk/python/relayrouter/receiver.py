"""Frames of all channels -> one order. What is missing is waited for, then asked from history, then told as lost."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from relayrouter.channel import TICK_SECONDS
from relayrouter.cursor import Cursor
from relayrouter.handover import Handover
from relayrouter.history import pages
from relayrouter.http import Http
from relayrouter.messages import POSITION_KINDS, Frame
from relayrouter.place import Lane, Place, Step


class Receiver:
    """`on_control` hears of control frames that are no part of the order. `on_unfilled`: history did not answer."""

    def __init__(
        self,
        place: Place,
        handover: Handover,
        http: Http,
        client: Callable[[], str],
        *,
        reorder_seconds: float,
        clock: Callable[[], float],
        start: Callable[[str, Coroutine[Any, Any, None]], object],
        on_unfilled: Callable[[], None],
    ) -> None:
        self.place = place
        self._handover = handover
        self._http = http
        self._client = client
        self._reorder_seconds = reorder_seconds
        self._clock = clock
        self._start = start
        self._on_unfilled = on_unfilled
        self._is_filling = False
        self._asked_again_at: Cursor | None = None
        self.is_streaming = False
        """The last message was in the middle of a run."""

    def take(self, lane: Lane, frame: Frame) -> bool:
        """True: it is control, and the caller's affair. Raises ProtocolError."""
        steps = self.place.take(lane, frame, self._clock())
        if frame.is_control and (frame.kind not in POSITION_KINDS or frame.kind == "welcome"):
            return True
        self._pass_on(steps)
        if self.place.hole_since is not None and not self._is_filling:
            self._is_filling = True
            self._start("back-fill", self._fill())
        return False

    def _pass_on(self, steps: list[Step]) -> None:
        for step in steps:
            if not step.frame.is_control:
                self.is_streaming = step.frame.kind != "run_end"
            self._handover.put(step)

    async def _fill(self) -> None:
        try:
            while (since := self.place.hole_since) is not None:
                wait = since + self._reorder_seconds - self._clock()
                if wait > TICK_SECONDS:
                    await asyncio.sleep(wait)
                    continue
                if not await self._ask_history():
                    return
        finally:
            self._is_filling = False

    async def _ask_history(self) -> bool:
        """False: it did not answer, and the channel is asked instead."""
        cursor = self.place.cursor
        if cursor is None:
            return False
        was_heard = False
        asked_before, self._asked_again_at = self._asked_again_at == cursor, cursor
        async for page in pages(self._http, self._client(), cursor):
            if any(frame.kind == "snapshot" for frame in page.frames):
                break  # part of it has left the log: the channel rebuilds it
            was_heard = True
            self._pass_on(self.place.back_fill(page.frames, self._clock(), page.cursor))
            if self.place.hole_since is None:
                return True
        if not was_heard and not asked_before:
            self._on_unfilled()
            return False
        self._pass_on(self.place.give_up_hole())
        return True


__all__ = ["Receiver"]
