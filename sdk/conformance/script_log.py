"""A scenario's log: its server's messages 1..n as frames, merged or one by one, and what their text must be.

Pure. `at` and digests are computed, so that a scenario cannot be wrong about them by accident.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Payload = dict[str, Any]
Frame = dict[str, Any]
TEXT_KINDS: Final = ("delta", "code_block")
TIMESTAMP_MS: Final = 1_796_040_000_000


class BadScenario(Exception):
    """The scenario's file says something that cannot be. The message names the place."""


@dataclass(frozen=True, slots=True)
class Span:
    """Messages first..last, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: object) -> "Span":
        """`7` or `3-9`."""
        first, _, last = str(text).partition("-")
        try:
            span = cls(int(first), int(last or first))
        except ValueError:
            raise BadScenario(f"{text!r} is no span; write 7 or 3-9") from None
        if not 0 < span.first <= span.last:
            raise BadScenario(f"{text!r} is no span of messages")
        return span


def track_of(payload: Mapping[str, Any]) -> tuple[str, str] | None:
    """Which text a payload is a part of: (run, `text` or `thinking`); None when it bears none."""
    kind = payload.get("kind")
    if kind in TEXT_KINDS and "text" in payload:
        return str(payload["run"]), "text"
    if kind == "thinking" and "text" in payload:
        return str(payload["run"]), "thinking"
    return None


class ScriptLog:
    """Message 1 is the first payload."""

    def __init__(self, session: str, payloads: Sequence[Payload]) -> None:
        self.session = session
        self._texts: dict[tuple[str, str], str] = {}
        self.payloads = [self._complete(dict(payload)) for payload in payloads]

    def _complete(self, payload: Payload) -> Payload:
        track = track_of(payload)
        if track is not None:
            so_far = self._texts.get(track, "")
            payload.setdefault("at", len(so_far.encode()))
            self._texts[track] = so_far + payload["text"]
        if payload.get("kind") == "run_end":
            text = self._texts.get((payload["run"], "text"), "").encode()
            payload.setdefault("reason", "complete")
            payload.setdefault("bytes", len(text))
            payload.setdefault("code_points", len(text.decode()))
            payload.setdefault("sha256", hashlib.sha256(text).hexdigest())
        return payload

    @property
    def head(self) -> int:
        return len(self.payloads)

    def payload(self, seq: int) -> Payload:
        if not 1 <= seq <= self.head:
            raise BadScenario(f"the log has no message {seq}")
        return self.payloads[seq - 1]

    def envelope(self, seq: int, payload: Payload, first_seq: int | None = None) -> Frame:
        frame: Frame = {"type": "text", "seq": seq, "timestamp": TIMESTAMP_MS + seq, "session_id": self.session}
        if first_seq is not None:
            frame["first_seq"] = first_seq
        return frame | {"payload": payload}

    def frames(self, span: Span) -> list[Frame]:
        return [self.envelope(seq, self.payload(seq)) for seq in range(span.first, span.last + 1)]

    def merged(self, span: Span) -> Frame:
        """One frame of several messages, which must be of one run and kind."""
        parts = [self.payload(seq) for seq in range(span.first, span.last + 1)]
        if len({(part["kind"], track_of(part)) for part in parts}) != 1 or track_of(parts[0]) is None:
            raise BadScenario(f"messages {span.first}-{span.last} cannot be merged")
        payload = parts[0] | {"text": "".join(part["text"] for part in parts)}
        return self.envelope(span.last, payload, span.first)

    def text_of(self, span: Span) -> str:
        """What messages first..last add to their run's text."""
        return "".join(str(self.payload(seq).get("text", "")) for seq in range(span.first, span.last + 1))

    def run_text(self, run: str, track: str = "text") -> str:
        return self._texts.get((run, track), "")

    def page(self, since: int, limit: int) -> tuple[list[Frame], int]:
        """History: frames after `since`, and the position after the last of them."""
        last = min(self.head, since + limit)
        return (self.frames(Span(since + 1, last)) if last > since else []), max(last, since)


def control_frame(session: str, payload: Payload) -> Frame:
    return {"type": "control", "timestamp": TIMESTAMP_MS, "session_id": session, "payload": payload}


__all__ = ["BadScenario", "Frame", "Payload", "ScriptLog", "Span", "control_frame", "track_of"]
