"""Logs of runs as frames: single, merged as a catch-up merges them, or rebuilt below a position as snapshots."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.merge import merge
from gateway.domain.streams.pieces import DataPiece, TextPiece, ThinkingPiece, ToolPiece
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.payload import make_item

SESSION = "chat-1"
LINE = "e1.f1"


class Frame(NamedTuple):
    """As a connection gets it. `cursor`: the position after it; empty where it moves none."""

    envelope: dict[str, Any]
    cursor: str


class Log:
    """The messages of one session, from seq 1 on."""

    def __init__(self, *payloads: dict[str, Any]) -> None:
        self._entries: list[LogEntry] = []
        self._lengths: dict[tuple[str, str], int] = {}
        for payload in payloads:
            self.append(payload)

    def append(self, payload: dict[str, Any]) -> None:
        item = make_item(payload)
        seq = len(self._entries) + 1
        head = f'{{"type":"text","seq":{seq},"timestamp":{1_700_000_000_000 + seq},"session_id":"{SESSION}","payload":'
        at, tail = None, b"}}"
        if item.counts_text:
            track = (item.run, "thinking" if payload["kind"] == "thinking" else "text")
            at = self._lengths.get(track, 0)
            self._lengths[track] = at + item.text_bytes
            tail = b',"at":%d}}' % at
        frame = head.encode() + item.body + tail
        self._entries.append(LogEntry(seq, item.cls.encode(), item.run.encode(), at, item.text_bytes, frame))

    @property
    def head(self) -> int:
        return len(self._entries)

    def frames(self, after: int = 0, *, max_bytes: int = 0) -> list[Frame]:
        """What follows a position; merged up to so many bytes a frame."""
        entries = self._entries[after:]
        if not max_bytes:
            return [Frame(json.loads(entry.frame), _cursor(entry.seq)) for entry in entries]
        return [Frame(json.loads(out.frame), _cursor(out.seq)) for out in merge(entries, max_bytes)]

    def rebuilt(self, lost: int, part_chars: int = 7) -> Iterator[Frame]:
        """Each run's texts up to `lost` as snapshots in parts, then the frames above it."""
        payloads = [json.loads(entry.frame)["payload"] for entry in self._entries[:lost]]
        runs = list(dict.fromkeys(payload["run"] for payload in payloads if "run" in payload))
        frames: list[dict[str, Any]] = []
        for run in runs:
            own = [payload for payload in payloads if payload.get("run") == run]
            end = next((payload for payload in own if payload["kind"] == "run_end"), None)
            for track, kinds in (("thinking", {"thinking"}), ("text", {"delta", "code_block"})):
                text = "".join(payload["text"] for payload in own if payload["kind"] in kinds)
                if track == "thinking" and not text:
                    continue
                parts = [text[place : place + part_chars] for place in range(0, len(text), part_chars)] or [""]
                at = 0
                for number, part in enumerate(parts):
                    is_last = number == len(parts) - 1
                    frame = {"kind": "snapshot", "run": run, "track": track, "at": at, "text": part, "last": is_last}
                    at += len(part.encode())
                    if number == 0:
                        frame["start"] = {"kind": "run_start", "run": run}
                    if is_last and track == "text" and end is not None:
                        frame["end"] = end
                    frames.append(frame)
        for number, payload in enumerate(frames):
            is_last = number == len(frames) - 1
            yield control(payload, _cursor(lost) if is_last else "")
        yield from self.frames(lost)


def control(payload: dict[str, Any], cursor: str = "") -> Frame:
    envelope = {"type": "control", "timestamp": 1_700_000_000_000, "session_id": SESSION, "payload": payload}
    return Frame(envelope, cursor)


def run_payloads(name: DialectName, stream: bytes, run: str = "r1") -> list[dict[str, Any]]:
    """What the ingest of a producer's stream makes of it, without segmentation."""
    dialect = open_dialect(name)
    pieces = list(dialect.feed(stream))
    rest, end = dialect.close()
    payloads: list[dict[str, Any]] = [{"kind": "run_start", "run": run}]
    for piece in [*pieces, *rest]:
        match piece:
            case TextPiece(text):
                payloads.append({"kind": "delta", "run": run, "text": text})
            case ThinkingPiece(text):
                payloads.append({"kind": "thinking", "run": run, "text": text})
            case ToolPiece(data):
                payloads.append({"kind": "tool", "run": run, "data": data})
            case DataPiece(data):
                payloads.append({"kind": "data", "run": run, "data": data})
    fields: dict[str, Any] = {"finish_reason": end.finish_reason, "usage": end.usage}
    told = {name: value for name, value in fields.items() if value is not None}
    return [*payloads, {"kind": "run_end", "run": run, "reason": end.reason.value} | told]


def _cursor(seq: int) -> str:
    return f"{LINE}.{seq}"


__all__ = ["LINE", "SESSION", "Frame", "Log", "control", "run_payloads"]
