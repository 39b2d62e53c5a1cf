"""The messages of one run in order: run_start, deltas, run_end with counts and digest. Pure."""

import hashlib
from typing import Any

from gateway.domain.streams.pieces import (
    DataPiece,
    Piece,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
    split_text,
)

MAX_TEXT_BYTES = 8 * 1024
"""Of one delta: even when JSON escapes every byte sixfold, the message stays below 64 KiB."""


class TextCount:
    """Bytes, code points and SHA-256 of a text that comes in parts."""

    def __init__(self) -> None:
        self.bytes = 0
        self.code_points = 0
        self._digest = hashlib.sha256()

    def add(self, text: str) -> None:
        data = text.encode()
        self.bytes += len(data)
        self.code_points += len(text)
        self._digest.update(data)

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def fields(self) -> dict[str, Any]:
        """As `run_end` carries them."""
        return {"bytes": self.bytes, "code_points": self.code_points, "sha256": self.sha256}


class RunScript:
    """Payloads of one run; each is to be appended in the order in which it is returned."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.text = TextCount()
        self.thinking = TextCount()

    def start(self) -> dict[str, Any]:
        return {"kind": "run_start", "run": self.run}

    def payloads(self, piece: Piece) -> list[dict[str, Any]]:
        """One message for a piece; several only where its text is longer than a message should be."""
        match piece:
            case TextPiece(text):
                self.text.add(text)
                return [self._texts("delta", part) for part in split_text(text, MAX_TEXT_BYTES)]
            case ThinkingPiece(text):
                self.thinking.add(text)
                return [self._texts("thinking", part) for part in split_text(text, MAX_TEXT_BYTES)]
            case ToolPiece(data):
                return [{"kind": "tool", "run": self.run, "data": data}]
            case DataPiece(data):
                return [{"kind": "data", "run": self.run, "data": data}]

    def end(self, end: StreamEnd) -> dict[str, Any]:
        payload: dict[str, Any] = {"kind": "run_end", "run": self.run, "reason": end.reason.value}
        if end.finish_reason is not None:
            payload["finish_reason"] = end.finish_reason
        if end.usage is not None:
            payload["usage"] = end.usage
        if end.problem is not None:
            payload["problem"] = end.problem
        if end.replaced:
            payload["replaced"] = end.replaced
        return payload | self.text.fields() | {"reasoning": self.thinking.fields()}

    def _texts(self, kind: str, text: str) -> dict[str, Any]:
        return {"kind": kind, "run": self.run, "text": text}


__all__ = ["MAX_TEXT_BYTES", "RunScript", "TextCount"]
