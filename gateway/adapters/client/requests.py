"""What a reader says on its connection: input, interrupt, pause, resume, cancel, answer; each settled by `accepted`.

What is not settled is said again on the next connection: controls are idempotent, and an input keeps its number, so it
is accepted once. Needs somebody who awaits the reader's frames meanwhile.
"""

import asyncio
import json
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from gateway.adapters.client.link import Link

_RETRY_SECONDS = 0.5
"""After a refusal that passes, when it does not say how long it takes."""

_Key = tuple[str, str | int]


class RequestRefused(Exception):
    """The gateway's `error`, which another attempt would not change."""

    def __init__(self, payload: dict[str, Any]) -> None:
        super().__init__(f"{payload.get('code')}: {payload.get('message')}")
        self.code = str(payload.get("code"))
        self.payload = payload


class ReaderClosed(Exception):
    """Nobody reads any more, so nothing can be settled."""


@dataclass(slots=True)
class _Pending:
    text: str
    answer: "asyncio.Future[dict[str, Any]]"


class Requests:
    """Of one reader, over all its connections."""

    def __init__(self) -> None:
        self._link: Link | None = None
        self._pending: dict[_Key, _Pending] = {}
        self._inputs = asyncio.Lock()
        self._welcomed = asyncio.Event()
        self._input_seq = 0
        self._is_paused = False
        self._is_closed = False

    # ---- what the reader tells ---------------------------------------------------------------------------------

    async def welcome(self, link: Link, payload: dict[str, Any]) -> None:
        """A new connection: everything that is open is said again."""
        self._link = link
        known = payload.get("input_seq")
        self._input_seq = known if isinstance(known, int) else self._input_seq
        self._welcomed.set()
        if self._is_paused and not any(what in ("pause", "resume") for what, _ in self._pending):
            await link.send(_control({"kind": "pause"}))
        for pending in list(self._pending.values()):
            await link.send(pending.text)

    def lost(self) -> None:
        """The connection ended; another one follows."""
        self._link = None
        self._welcomed.clear()

    def close(self) -> None:
        self._is_closed = True
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(ReaderClosed("the reader was closed"))

    def settle(self, payload: dict[str, Any]) -> None:
        """An `accepted` or `error` frame. One that answers nothing of ours changes nothing."""
        what = str(payload.get("what"))
        number: Any = payload.get("seq") if what == "input" else payload.get("id")
        pending = self._pending.get((what, number)) if isinstance(number, str | int) else None
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(payload)

    # ---- what the application asks -----------------------------------------------------------------------------

    async def send(self, payload: dict[str, Any]) -> int:
        """One message to the agent: returns its number when it is durable. One at a time, in the order of the calls."""
        async with self._inputs:
            await self._until_welcome()
            number = self._input_seq + 1
            while True:
                message = {"type": "text", "seq": number, "payload": payload}
                answer = await self._ask(("input", number), _dump(message))
                if answer.get("kind") == "accepted":
                    self._input_seq = max(self._input_seq, number)
                    return number
                expected = answer.get("expected")
                if answer.get("code") == "expected" and isinstance(expected, int):
                    number = expected
                    continue
                await _wait_or_raise(answer)

    async def control(self, kind: str, **fields: Any) -> dict[str, Any]:
        """The `accepted` payload. Raises RequestRefused."""
        if kind in ("pause", "resume"):
            self._is_paused = kind == "pause"
        ident = token_hex(8)
        given = {name: value for name, value in fields.items() if value is not None}
        while True:
            answer = await self._ask((kind, ident), _control({"kind": kind, **given, "id": ident}))
            if answer.get("kind") == "accepted":
                return answer
            await _wait_or_raise(answer)

    async def _until_welcome(self) -> None:
        if self._is_closed:
            raise ReaderClosed("the reader was closed")
        await self._welcomed.wait()

    async def _ask(self, key: _Key, text: str) -> dict[str, Any]:
        if self._is_closed:
            raise ReaderClosed("the reader was closed")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[key] = _Pending(text, answer)
        try:
            if self._link is not None:
                await self._link.send(text)
            return await answer
        finally:
            del self._pending[key]


async def _wait_or_raise(answer: dict[str, Any]) -> None:
    if answer.get("retryable") is not True:
        raise RequestRefused(answer)
    after_ms = answer.get("after_ms")
    await asyncio.sleep(after_ms / 1000 if isinstance(after_ms, int | float) else _RETRY_SECONDS)


def _control(payload: dict[str, Any]) -> str:
    return _dump({"type": "control", "payload": payload})


def _dump(message: dict[str, Any]) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


__all__ = ["ReaderClosed", "RequestRefused", "Requests"]
