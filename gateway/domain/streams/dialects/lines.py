"""Dialects of lines: bytes -> lines -> payloads, the event-stream framing, what ends a stream, and what is saved.

Owns the line number and the rule that a bad line ends the stream. Each dialect reads a payload in its own module.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

import msgspec

from gateway.domain.streams.dialects.dialect import DialectName
from gateway.domain.streams.dialects.json_lines import BadLine, ProviderError, decode_carefully, provider_error
from gateway.domain.streams.dialects.line_state import LineState, encode_rest, join_state, split_state
from gateway.domain.streams.dialects.sendable import sendable
from gateway.domain.streams.pieces import (
    DataPiece,
    EndReason,
    Piece,
    StreamEnd,
    SurrogateMender,
    TextPiece,
    ThinkingPiece,
    ToolPiece,
)
from gateway.domain.wire.payload import mend_surrogates

MAX_LINE_BYTES = 1024 * 1024
"""A provider's chunk has some hundred bytes; a line this long is no chunk, and must not fill our memory."""

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"

_OBJECT = msgspec.json.Decoder(dict[str, Any])

_T = TypeVar("_T")


class LineSplitter:
    """Bytes -> lines without their LF or CRLF. No other character ends a line (failure catalogue S06)."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.held_bytes = 0
        """Of the line that has no end yet."""

    @property
    def is_too_long(self) -> bool:
        """The line without an end is longer than any may be; a CR at its end may yet be half of its CRLF."""
        if self.held_bytes <= MAX_LINE_BYTES:
            return False
        return self.held_bytes > MAX_LINE_BYTES + 1 or self._parts[-1][-1:] != b"\r"

    def feed(self, data: bytes) -> list[bytes]:
        first, *rest = data.split(b"\n")
        if first:
            self._parts.append(first)
            self.held_bytes += len(first)
        if not rest:
            return []
        last = rest.pop()
        lines = [b"".join(self._parts), *rest]
        self._parts = [last] if last else []
        self.held_bytes = len(last)
        return [line.removesuffix(b"\r") for line in lines]

    def close(self) -> bytes:
        """The last line, when the input did not end with a line break."""
        line = b"".join(self._parts)
        self._parts = []
        self.held_bytes = 0
        return line.removesuffix(b"\r")


class LineDialect(ABC):
    """What stands before a bad line is delivered. Once the provider said that it had finished, bad lines are ignored.

    Pieces have no surrogates and fit into a message, except that texts are as long as the provider sent them.
    """

    _NAME: ClassVar[DialectName]
    _MARKS: ClassVar[str]
    """What would have made the stream complete, after "the stream ended ..."."""
    _IS_FRAMED: ClassVar[bool] = True
    """Whether lines may be those of an event stream: `data: <JSON>`. Each data line is one payload."""

    def __init__(self, state: bytes | None = None, offset: int = 0) -> None:
        self._line_number, saved = (0, LineState()) if state is None else split_state(self._NAME, state)
        self._splitter = LineSplitter()
        self._fed_bytes = offset
        self._finish_reason = saved.finish_reason
        self._usage = saved.usage
        self._problem = saved.problem
        self._is_cut = saved.is_cut
        self.is_over = saved.is_done or saved.problem is not None
        self._is_error_event = saved.is_error_event
        self._text = SurrogateMender(chr(saved.held_text) if saved.held_text else "")
        self._thinking = SurrogateMender(chr(saved.held_thinking) if saved.held_thinking else "")
        self._replaced = saved.replaced
        self._load_extra(saved.extra)
        self._pieces: list[Piece] = []
        self._is_slow_line = False
        self._saved_rest: bytes | None = None
        """Nothing but the line number changed since it was made; None when something did."""

    @property
    def replaced(self) -> int:
        return self._replaced + self._text.replaced + self._thinking.replaced

    def feed(self, data: bytes) -> list[Piece]:
        self._fed_bytes += len(data)
        if self.is_over:
            return []
        for line in self._splitter.feed(data):
            self._line_number += 1
            if line or self._is_error_event:  # half of an event stream's lines are empty, and say no more than this
                self._take(line)
        if self._splitter.is_too_long:
            self._line_number += 1
            self._refuse_length()
        return self._taken_pieces()

    def close(self) -> tuple[list[Piece], StreamEnd]:
        if line := self._splitter.close():
            self._line_number += 1
            self._take(line)
        if rest := self._thinking.close():
            self._pieces.append(ThinkingPiece(rest))
        if rest := self._text.close():
            self._pieces.append(TextPiece(rest))
        return self._taken_pieces(), self._end()

    def save(self) -> tuple[int, bytes]:
        if self._saved_rest is None:
            self._saved_rest = encode_rest(self._state())
        return self._fed_bytes - self._splitter.held_bytes, join_state(self._NAME, self._line_number, self._saved_rest)

    @abstractmethod
    def _take_payload(self, payload: bytes) -> None:
        """One line's JSON. Raises BadLine or ProviderError; what it added before stays."""

    def _save_extra(self) -> Any:
        """The dialect's own state as plain values; None when there is none."""
        return None

    def _load_extra(self, extra: Any) -> None:
        """Raises ValueError for what `_save_extra` never returns."""
        if extra is not None:
            raise ValueError(f"the state has more than the dialect {self._NAME} saves")

    def _decode(self, payload: bytes, decoder: "msgspec.json.Decoder[_T]") -> _T:
        try:
            return decoder.decode(payload)
        except (ValueError, RecursionError):
            line, replaced = decode_carefully(payload, decoder)
        self._is_slow_line = True
        self._replaced += replaced
        self._saved_rest = None
        return line

    def _add_text(self, text: str) -> None:
        if text := self._mend(self._text, text):
            self._pieces.append(TextPiece(text))

    def _add_thinking(self, text: str) -> None:
        if text := self._mend(self._thinking, text):
            self._pieces.append(ThinkingPiece(text))

    def _add_tool(self, data: dict[str, Any], line_bytes: int) -> None:
        self._pieces.append(ToolPiece(sendable(self._mend_data(data), line_bytes)))

    def _add_data(self, data: dict[str, Any], line_bytes: int) -> None:
        self._pieces.append(DataPiece(sendable(self._mend_data(data), line_bytes)))

    def _set_finish_reason(self, reason: str | None) -> None:
        if reason is not None:
            self._finish_reason = reason
            self._saved_rest = None

    def _set_usage(self, usage: Any, line_bytes: int) -> None:
        """What no message can carry is no usage, and no reason to fail a stream."""
        if type(usage) is dict and sendable(usage, line_bytes) is usage:
            self._usage = self._mend_data(usage)
            self._saved_rest = None

    def _set_done(self) -> None:
        self.is_over = True
        self._splitter.close()
        self._saved_rest = None

    def _fail(self, problem: str, *, is_cut: bool = False) -> None:
        """`is_cut` makes the stream incomplete instead of failed."""
        self._problem = problem
        self._is_cut = is_cut
        self._set_done()

    def _taken_pieces(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _take(self, line: bytes) -> None:
        if self.is_over:
            return
        if len(line) > MAX_LINE_BYTES:
            self._refuse_length()
            return
        self._is_slow_line = False
        try:
            if payload := self._payload_of(line.removeprefix(_BOM) if self._line_number == 1 else line):
                self._take_payload(payload)
        except BadLine as exc:
            if self._finish_reason is None:
                self._fail(f"line {self._line_number} {exc}")
        except ProviderError as exc:
            self._fail(f"line {self._line_number} {exc}")

    def _refuse_length(self) -> None:
        if self._finish_reason is None:
            self._fail(f"line {self._line_number} is longer than {MAX_LINE_BYTES} bytes")
        self._set_done()

    def _payload_of(self, line: bytes) -> bytes:
        """The JSON of a line; empty for blanks, comments, `[DONE]` and the other fields of an event stream."""
        if line[:7] == b"data: {" and self._IS_FRAMED and not self._is_error_event:
            return line[6:]  # nearly every line; blanks at its end are no matter to JSON
        if not self._IS_FRAMED or line[:1] == b"{":
            return line.strip(_BLANKS)
        name, _, value = line.partition(b":")
        match name:
            case b"data":
                payload = value.strip(_BLANKS)
                if payload and self._is_error_event:
                    self._raise_reported(payload)
            case b"event":
                self._mark_event(is_error=value.strip(_BLANKS) == b"error")
                return b""
            case b"id" | b"retry":
                return b""
            case _:
                payload = line.strip(_BLANKS)
                if not payload:  # a blank line ends the event, a comment does not
                    self._mark_event(is_error=False)
                if not name.strip():
                    return b""
        if payload == b"[DONE]":
            self._set_done()
            return b""
        return payload

    def _mark_event(self, *, is_error: bool) -> None:
        if is_error is not self._is_error_event:
            self._is_error_event = is_error
            self._saved_rest = None

    def _raise_reported(self, payload: bytes) -> None:
        """The data of an `event: error` is an error, whatever its shape."""
        try:
            report, _ = decode_carefully(payload, _OBJECT)
        except BadLine:
            raise provider_error(payload.decode("utf-8", "replace")) from None
        raise provider_error(report.get("error") or report)

    def _mend(self, mender: SurrogateMender, text: str) -> str:
        if not text:
            return ""
        if not mender.held and not self._is_slow_line:
            return text  # the fast decoder lets no surrogate through
        self._saved_rest = None
        return mender.feed(text)

    def _mend_data(self, data: dict[str, Any]) -> dict[str, Any]:
        return mend_surrogates(data) if self._is_slow_line else data

    def _state(self) -> LineState:
        return LineState(
            finish_reason=self._finish_reason,
            usage=self._usage,
            problem=self._problem,
            is_cut=self._is_cut,
            is_done=self.is_over,
            is_error_event=self._is_error_event,
            held_text=ord(self._text.held) if self._text.held else 0,
            held_thinking=ord(self._thinking.held) if self._thinking.held else 0,
            replaced=self.replaced,
            extra=None if self.is_over else self._save_extra(),
        )

    def _end(self) -> StreamEnd:
        reason, problem = EndReason.COMPLETE, self._problem
        if problem is not None:
            reason = EndReason.INCOMPLETE if self._is_cut else EndReason.FAILED
        elif self._finish_reason is None and not self.is_over:
            reason = EndReason.INCOMPLETE
            problem = f"the stream ended after line {self._line_number} {self._MARKS}"
        return StreamEnd(reason, self._finish_reason, self._usage, problem, self.replaced)


__all__ = ["MAX_LINE_BYTES", "LineDialect", "LineSplitter"]
