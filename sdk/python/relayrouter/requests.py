"""Controls of the user: interrupt, pause, resume, cancel, answer; each settled by `accepted`, over all channels.

What is not settled is said again on the next channel: controls are idempotent.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from relayrouter.endings import refusal
from relayrouter.errors import ClosedError, QueueFullError, RelayError

MAX_PENDING = 64
_RETRY_SECONDS = 0.5
"""After a refusal that passes, when it does not say how long it takes."""
_STATUS_OF_CODE = {"not_found": 404, "gone": 410, "forbidden": 403, "unauthenticated": 401}
"""The typed error of a refusal that comes as a frame, without an HTTP status."""


@dataclass(slots=True, eq=False)
class Pending:
    """`is_said`: on the channel of now."""

    ident: str
    payload: dict[str, Any]
    answer: "asyncio.Future[dict[str, Any]]"
    is_said: bool = False
    is_awaited: bool = True

    @property
    def kind(self) -> str:
        return str(self.payload["kind"])

    def to_text(self) -> str:
        return json.dumps({"type": "control", "payload": self.payload}, ensure_ascii=False, separators=(",", ":"))


class Requests:
    """Of one session. `on_pending`: something is to be said."""

    def __init__(self, on_pending: Callable[[], None]) -> None:
        self._on_pending = on_pending
        self._pending: dict[str, Pending] = {}
        self._closed: RelayError | None = None
        self.is_paused = False

    async def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """What the gateway's `accepted` says. Raises RelayError; TypeError or ValueError for what is no JSON."""
        if kind in ("pause", "resume"):
            self.is_paused = kind == "pause"
        given = {name: value for name, value in fields.items() if value is not None}
        json.dumps(given, ensure_ascii=False, allow_nan=False).encode()  # here, not in the task that sends it
        while True:
            answer = await self._once({"kind": kind, **given})
            if answer.get("kind") != "error":
                return answer
            if answer.get("retryable") is not True:
                raise error_of_frame(answer)
            after_ms = answer.get("after_ms")
            await asyncio.sleep(after_ms / 1000 if isinstance(after_ms, int | float) else _RETRY_SECONDS)

    def settle(self, payload: dict[str, Any]) -> Pending | None:
        """An `accepted` or `error` that names one of ours."""
        pending = self._pending.get(str(payload.get("id")))
        if pending is None or pending.answer.done() or payload.get("what", pending.kind) != pending.kind:
            return None
        pending.answer.set_result(payload)
        if not pending.is_awaited:
            del self._pending[pending.ident]
        return pending

    def unsaid(self) -> list[Pending]:
        return [pending for pending in self._pending.values() if not pending.is_said and not pending.answer.done()]

    def lost(self) -> None:
        """The channel changed: everything is said again."""
        for pending in self._pending.values():
            pending.is_said = False

    def steers(self) -> bool:
        """A pause or resume is on its way, so that the new channel need not be told by itself."""
        return any(pending.kind in ("pause", "resume") for pending in self._pending.values())

    def pause_anew(self) -> None:
        """The session is paused and the new channel does not know."""
        ident = token_hex(8)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[ident] = Pending(ident, {"kind": "pause", "id": ident}, answer, is_awaited=False)
        self._on_pending()

    def close(self, error: RelayError | None) -> None:
        self._closed = error or ClosedError("the session was closed")
        for pending in self._pending.values():
            if pending.is_awaited and not pending.answer.done():
                pending.answer.set_exception(self._closed)

    async def _once(self, payload: dict[str, Any]) -> dict[str, Any]:
        if self._closed is not None:
            raise self._closed
        if len(self._pending) >= MAX_PENDING:
            raise QueueFullError(f"{MAX_PENDING} requests wait for a gateway already")
        ident = token_hex(8)
        pending = Pending(ident, payload | {"id": ident}, asyncio.get_running_loop().create_future())
        self._pending[ident] = pending
        self._on_pending()
        try:
            return await pending.answer
        finally:
            del self._pending[ident]


def error_of_frame(payload: dict[str, Any]) -> RelayError:
    """The typed error of an `error` frame, or of the same as an HTTP answer."""
    status = payload.get("status")
    if not isinstance(status, int):
        status = _STATUS_OF_CODE.get(str(payload.get("code")), 0)
    details = {name: value for name, value in payload.items() if name not in ("kind", "code", "message")}
    return refusal(status, {"code": payload.get("code"), "message": payload.get("message"), "details": details})


__all__ = ["MAX_PENDING", "Pending", "Requests", "error_of_frame"]
