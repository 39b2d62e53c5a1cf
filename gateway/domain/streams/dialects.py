"""Provider streams: bytes as they arrive -> pieces. Pure and incremental; how the bytes are cut never changes the text.

Used by `relayrouter publish` and the demo. Must never lose or add a character of well-formed input.
"""

import codecs
import json
from enum import StrEnum
from typing import Any, Protocol

from gateway.domain.streams.pieces import (
    EndReason,
    Piece,
    StreamEnd,
    SurrogateMender,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
)

MAX_LINE_BYTES = 1024 * 1024
"""A provider's chunk has some hundred bytes; a line this long is no chunk, and must not fill our memory."""

_BOM = b"\xef\xbb\xbf"
_SSE_FIELDS_BESIDE_DATA = (b"event", b"id", b"retry")
_MAX_QUOTED = 200


class DialectName(StrEnum):
    TEXT = "text"
    OPENAI = "openai"


class Dialect(Protocol):
    """One stream. After `is_over` further bytes are ignored; `close` is called once, at the end of the input."""

    @property
    def is_over(self) -> bool:
        """The stream said that it ended, or failed: nothing that follows counts."""
        ...

    def feed(self, data: bytes) -> list[Piece]: ...

    def close(self) -> tuple[list[Piece], StreamEnd]: ...


def open_dialect(name: DialectName) -> Dialect:
    match name:
        case DialectName.TEXT:
            return TextDialect()
        case DialectName.OPENAI:
            return OpenAiDialect()


class TextDialect:
    """UTF-8 text. A character cut between two reads waits for its rest; bytes that are no UTF-8 become U+FFFD."""

    is_over = False

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> list[Piece]:
        text = self._decoder.decode(data)
        return [TextPiece(text)] if text else []

    def close(self) -> tuple[list[Piece], StreamEnd]:
        text = self._decoder.decode(b"", final=True)
        return [TextPiece(text)] if text else [], StreamEnd(EndReason.COMPLETE)


class LineSplitter:
    """Bytes -> lines without their LF or CRLF. No other character ends a line (failure catalogue S06)."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held_bytes = 0

    @property
    def held_bytes(self) -> int:
        return self._held_bytes

    def feed(self, data: bytes) -> list[bytes]:
        first, *rest = data.split(b"\n")
        self._parts.append(first)
        self._held_bytes += len(first)
        if not rest:
            return []
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]]
        self._held_bytes = len(rest[-1])
        return [line.removesuffix(b"\r") for line in lines]

    def close(self) -> bytes:
        """The last line, when the input did not end with a line break."""
        line = b"".join(self._parts)
        self._parts = []
        self._held_bytes = 0
        return line.removesuffix(b"\r")


class _BadLine(Exception):
    """What is wrong with a line, without its number."""


class OpenAiDialect:
    """Chat-completion and text-completion chunks, one a line, bare or as `data:` of an event stream; choice 0 only.

    Either a finish_reason or `[DONE]` makes the answer complete. What stands before a bad line is delivered.
    """

    def __init__(self) -> None:
        self._splitter = LineSplitter()
        self._line_number = 0
        self._text = SurrogateMender()
        self._thinking = SurrogateMender()
        self._finish_reason: str | None = None
        self._usage: dict[str, Any] | None = None
        self._is_done = False
        self._problem: str | None = None

    @property
    def is_over(self) -> bool:
        return self._is_done or self._problem is not None

    def feed(self, data: bytes) -> list[Piece]:
        pieces: list[Piece] = []
        if self.is_over:
            return pieces
        for line in self._splitter.feed(data):
            self._take(line, pieces)
        if self._splitter.held_bytes > MAX_LINE_BYTES:
            self._fail(self._line_number + 1, f"is longer than {MAX_LINE_BYTES} bytes")
            self._splitter.close()
        return pieces

    def close(self) -> tuple[list[Piece], StreamEnd]:
        pieces: list[Piece] = []
        self._take(self._splitter.close(), pieces)
        pieces += [ThinkingPiece(rest)] if (rest := self._thinking.close()) else []
        pieces += [TextPiece(rest)] if (rest := self._text.close()) else []
        return pieces, self._end()

    def _end(self) -> StreamEnd:
        reason, problem = EndReason.COMPLETE, self._problem
        if problem is not None:
            reason = EndReason.FAILED
        elif self._finish_reason is None and not self._is_done:
            reason = EndReason.INCOMPLETE
            problem = f"the stream ended after line {self._line_number} with neither a finish_reason nor [DONE]"
        return StreamEnd(reason, self._finish_reason, self._usage, problem)

    def _fail(self, line_number: int, what: str) -> None:
        if self._problem is None:
            self._problem = f"line {line_number} {what}"

    def _take(self, line: bytes, pieces: list[Piece]) -> None:
        self._line_number += 1
        if self.is_over:
            return
        try:
            if len(line) > MAX_LINE_BYTES:
                raise _BadLine(f"is longer than {MAX_LINE_BYTES} bytes")
            payload = _payload_of(line.removeprefix(_BOM) if self._line_number == 1 else line)
            if payload == b"[DONE]":
                self._is_done = True
            elif payload:
                self._take_chunk(_decode_object(payload), pieces)
        except _BadLine as exc:
            self._fail(self._line_number, str(exc))

    def _take_chunk(self, chunk: dict[str, Any], pieces: list[Piece]) -> None:
        _raise_reported_error(chunk)
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        for choice in _objects(chunk.get("choices"), "choices"):
            if choice.get("index", 0) != 0:
                continue
            delta = choice.get("delta") or {}
            if not isinstance(delta, dict):
                raise _BadLine("has a delta that is no object")
            # Some servers send both names with the same text.
            thinking = _string(delta, "reasoning_content") or _string(delta, "reasoning")
            text = _string(delta, "content") or _string(choice, "text")
            finish_reason = _string(choice, "finish_reason")
            if thinking := self._thinking.feed(thinking):
                pieces.append(ThinkingPiece(thinking))
            if text := self._text.feed(text):
                pieces.append(TextPiece(text))
            if calls := {key: delta[key] for key in ("tool_calls", "function_call") if delta.get(key)}:
                pieces.append(ToolPiece(calls))
            self._finish_reason = finish_reason or self._finish_reason


def _payload_of(line: bytes) -> bytes:
    """The JSON (or `[DONE]`) of a line; empty for blanks, comments and other fields of an event stream."""
    name, _, value = line.partition(b":")
    if not name.strip() or name in _SSE_FIELDS_BESIDE_DATA:
        return b""
    return (value if name == b"data" else line).strip(b" \t\r")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _decode_object(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload.decode("utf-8", "replace"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _BadLine("is not JSON") from None
    if not isinstance(value, dict):
        raise _BadLine("is not a JSON object")
    return value


def _raise_reported_error(chunk: dict[str, Any]) -> None:
    error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
    if error is None:
        return
    message = error.get("message") or error.get("code") if isinstance(error, dict) else error
    raise _BadLine(f"reports an error: {str(message)[:_MAX_QUOTED]}")


def _objects(value: Any, what: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _BadLine(f"has {what} that are no list of objects")
    return value


def _string(holder: dict[str, Any], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _BadLine(f"has a {key} that is no text")
    return value


__all__ = ["MAX_LINE_BYTES", "Dialect", "DialectName", "LineSplitter", "OpenAiDialect", "TextDialect", "open_dialect"]
