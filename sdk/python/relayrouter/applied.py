"""What the application has: the place it is at, the texts of its runs, the asks that are open.

Everything here moves when a message is handed over, never before. Turns items into messages and events.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relayrouter.cursor import Cursor
from relayrouter.events import AskEvent, DigestEvent, Events, GapEvent, RunEvent, TextEvent
from relayrouter.handover import Item
from relayrouter.messages import TEXT_KINDS, Frame, Message
from relayrouter.texts import Change, RunTexts

_MAX_ASKS = 256


@dataclass(slots=True)
class Applied:
    """`on_mismatch`: a run's text differs from its digest; the digest event is then told by whoever heals it."""

    events: Events
    on_mismatch: Callable[[str, dict[str, Any]], None]
    cursor: Cursor | None = None
    texts: RunTexts = field(default_factory=RunTexts)
    asks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def apply(self, item: Item) -> list[Message]:
        """Usually one message; none for what only moves the place, two where a loss is told as well."""
        frame = item.frame
        messages = []
        if item.missing is not None:
            messages.append(self._loss(item, *item.missing))
        before, self.cursor = self.cursor, item.cursor
        if item.is_skipped:
            if frame.run is not None:
                self.texts.skip(frame.run)
            return messages
        change = self.texts.apply(frame, before)
        message = self._message(frame, change)
        if message is not None:
            messages.append(message)
        self._tell(frame, change)
        for each in messages:
            self.events.emit("message", each)
        return messages

    def open_ask(self, payload: dict[str, Any]) -> None:
        """Also ahead of its place: an ask waits for a person."""
        ask = payload.get("ask")
        if isinstance(ask, str) and ask not in self.asks:
            while len(self.asks) >= _MAX_ASKS:
                del self.asks[next(iter(self.asks))]
            self.asks[ask] = payload
            self.events.emit("ask", AskEvent(ask, payload))

    def _message(self, frame: Frame, change: Change) -> Message | None:
        if frame.is_control and (frame.kind == "forked" or (frame.kind == "snapshot" and frame.run is None)):
            return None
        text = frame.text
        if frame.kind in TEXT_KINDS or frame.kind == "snapshot":
            text = change.added
        seq = None if frame.is_control else frame.seq
        first = None if frame.is_control else frame.first_seq
        is_late = frame.payload.get("late") is True
        return Message(frame.kind, seq, first, frame.timestamp_ms, frame.run, text, frame.payload, is_late)

    def _tell(self, frame: Frame, change: Change) -> None:
        run = change.run
        if run is not None and change.started is not None:
            self.events.emit("run", RunEvent(run, "open", None, change.started))
        if run is not None and (change.added or change.is_rewritten):
            name = "thinking" if change.is_reasoning else "text"
            self.events.emit(name, TextEvent(run, change.added, change.is_rewritten))  # type: ignore[arg-type]
        if run is not None and change.ended is not None:
            self.events.emit("run", RunEvent(run, "ended", str(change.ended.get("reason")), change.ended))
            if change.is_equal:
                self.events.emit("digest", DigestEvent(run, ok=True, healed=False))
            elif change.is_equal is False:
                self.on_mismatch(run, change.ended)
        match frame.kind:
            case "gap" if frame.is_control:
                self._tell_gap(frame)
            case "ask":
                self.open_ask(frame.payload)
            case "ask_resolved":
                ask = frame.payload.get("ask")
                if isinstance(ask, str):
                    self.asks.pop(ask, None)
                    self.events.emit("ask_resolved", AskEvent(ask, frame.payload))

    def _tell_gap(self, frame: Frame) -> None:
        first, last = frame.payload.get("first"), frame.payload.get("last")
        self.events.emit(
            "gap",
            GapEvent(
                first if isinstance(first, int) else None,
                last if isinstance(last, int) else None,
                str(frame.payload.get("reason")),
            ),
        )

    def _loss(self, item: Item, first: int, last: int) -> Message:
        """Messages that came from nowhere and that no gap explains."""
        payload = {
            "kind": "gap",
            "first": first,
            "last": last,
            "reason": "missing",
            "cursor": str(item.cursor.at(last)),
        }
        frame = Frame("control", "gap", None, None, item.frame.timestamp_ms, payload, 0)
        self.texts.apply(frame)
        self._tell_gap(frame)
        return Message("gap", None, None, frame.timestamp_ms, None, "", payload)


__all__ = ["Applied"]
