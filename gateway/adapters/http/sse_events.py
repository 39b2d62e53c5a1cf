"""A connection's frames as Server-Sent Events: the native form, and the seam for output dialects (`format=`).

Nothing that comes from outside can begin a line of its own (S07): names are checked, data has no line ends.
"""

import re
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from gateway.adapters.http.sse_dialects import DialectEvents
from gateway.domain.streams.output import OutputFormat, Resume, open_translator
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode, Reconnect
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import RunId, SessionId

NEVER_MS: Final = 86_400_000
"""A plain EventSource always comes back; after a close that is final it had better not (a war of take-overs)."""
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TAKEN: Final = frozenset({"error", "open", "message", "close"})
"""An EventSource dispatches events of the first three by itself, and `close` is the end."""


class EventStream(Protocol):
    """One SSE response. Every call returns whole events, or nothing (`b""`)."""

    @property
    def is_over(self) -> bool:
        """All that was asked for has been written: the response ends."""
        ...

    def begin(self, retry_ms: int) -> bytes:
        """Before the first frame."""
        ...

    def text(self, envelope: bytes, cursor: str) -> bytes:
        """A message of the log, or several that were merged. `envelope`: its JSON, without line ends."""
        ...

    def control(self, kind: str, envelope: bytes, cursor: str | None) -> bytes:
        """`cursor` only where the frame moves the client's position."""
        ...

    def comment(self) -> bytes:
        """Keeps the connection alive."""
        ...

    def close(self, code: int, reason: str, retry_ms: int | None) -> bytes:
        """Nothing follows. `retry_ms`: when a client that comes back by itself should."""
        ...


def sse_event(data: bytes, *, event: str = "", ident: str | None = None, retry_ms: int | None = None) -> bytes:
    """One event. `data`, `event` and `ident` hold no CR, LF or NUL."""
    lines = []
    if event:
        lines.append(b"event: %b\n" % event.encode())
    if ident is not None:
        lines.append(b"id: %b\n" % ident.encode())
    if retry_ms is not None:
        lines.append(b"retry: %d\n" % retry_ms)
    lines.append(b"data: %b\n\n" % data)
    return b"".join(lines)


def event_name(kind: str) -> str:
    """Of a control frame: its kind, unless that means something else to an EventSource."""
    if _NAME.fullmatch(kind) is None:
        return "relay_control"
    return f"relay_{kind}" if kind in _TAKEN else kind


def retry_after_close(code: int) -> int | None:
    """None: the client's own pace."""
    rule = CLOSE_RULES.get(CloseCode(code)) if code in CLOSE_RULES else None
    return NEVER_MS if rule is not None and rule.reconnect is Reconnect.NO else None


class RelayEvents:
    """`format=relayrouter`: the same envelopes as on a WebSocket; the event id is the cursor."""

    __slots__ = ()
    is_over: ClassVar[bool] = False

    def begin(self, retry_ms: int) -> bytes:
        return b"retry: %d\n\n" % retry_ms

    def text(self, envelope: bytes, cursor: str) -> bytes:
        return b"id: %b\ndata: %b\n\n" % (cursor.encode(), envelope)

    def control(self, kind: str, envelope: bytes, cursor: str | None) -> bytes:
        return sse_event(envelope, event=event_name(kind), ident=cursor)

    def comment(self) -> bytes:
        return b": \n\n"

    def close(self, code: int, reason: str, retry_ms: int | None) -> bytes:
        body: dict[str, Any] = {"code": int(code), "reason": reason}
        return sse_event(encode_json(body), event="close", retry_ms=retry_ms)


class Shown(NamedTuple):
    """What a response shows."""

    format: OutputFormat
    session: SessionId
    run: RunId | None = None
    """For formats that show one run only; None: the next one that begins."""
    resume: Resume | None = None
    """Where a reader of such a format goes on."""
    message: str | None = None
    """The reader's message that the run goes on with."""


def event_stream(shown: Shown) -> EventStream:
    """A fresh one: it may keep a state of its response."""
    if shown.format is OutputFormat.RELAYROUTER:
        return RelayEvents()
    return DialectEvents(open_translator(*shown))


__all__ = [
    "NEVER_MS",
    "EventStream",
    "RelayEvents",
    "Shown",
    "event_name",
    "event_stream",
    "retry_after_close",
    "sse_event",
]
