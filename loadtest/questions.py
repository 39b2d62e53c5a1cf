"""What a reader of the oracle asks its gateway, and the answers; said again on the next socket when one breaks."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from loadtest.record import Record
from loadtest.wire import WebSocket

LOOK_SECONDS: Final = 0.02

_Answer = dict[str, Any]


class Questions:
    """Of one reader. `newest`: its socket, None while it has none."""

    def __init__(self, record: Record, newest: Callable[[], WebSocket | None]) -> None:
        self._record = record
        self._newest = newest
        self._asked: dict[tuple[str, Any], asyncio.Future[_Answer]] = {}
        self._seen: dict[str, int] = {}
        self._interrupts = 0

    def settle(self, payload: _Answer) -> None:
        """An `accepted` or `error` frame."""
        what = payload.get("what", "")
        if payload["kind"] == "accepted" and what == "interrupt":
            # At once: what the same read brings after it counts already.
            self._record.interrupted[payload["run"]] = self._seen.get(payload["run"], 0)
        asked = self._asked.get((what, payload.get("seq" if what == "input" else "id")))
        if asked is not None and not asked.done():
            asked.set_result(payload)

    async def ask(self, message: dict[str, Any], seconds: float) -> _Answer:
        """Raises TimeoutError."""
        what = "input" if message["type"] == "text" else message["payload"]["kind"]
        key = what, message["seq"] if what == "input" else message["payload"]["id"]
        answer = self._asked[key] = asyncio.get_running_loop().create_future()
        said_on: WebSocket | None = None
        try:
            async with asyncio.timeout(seconds):
                while not answer.done():
                    newest = self._newest()
                    if newest is not None and newest is not said_on:
                        said_on = newest
                        newest.send_text(json.dumps(message))
                    await asyncio.wait([answer], timeout=LOOK_SECONDS)
                result: _Answer = answer.result()
                return result
        finally:
            del self._asked[key]

    async def interrupt(self, run: str, seconds: float, *, with_seen: bool = True) -> _Answer:
        """Tells what the client has of the run, as a person would have seen it."""
        self._interrupts += 1
        payload: dict[str, Any] = {"kind": "interrupt", "run": run, "id": f"i{self._interrupts}"}
        if with_seen:
            seen_at = len(self._record.view.texts("text").get(run, "").encode())
            payload["seen"] = {"seq": max(self._record.position, 0), "at": seen_at}
            self._seen[run] = seen_at
        return await self.ask({"type": "control", "payload": payload}, seconds)


__all__ = ["Questions"]
