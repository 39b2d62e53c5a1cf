"""Our own dialect: one JSON object a line, for producers that have no provider's format to pass on.

    {"text": "..."}       part of the answer
    {"thinking": "..."}   part of the reasoning
    {"tool": {...}}       a tool call, or part of one; what it holds is between the producer and the client
    {"data": {...}}       anything else of structure
    {"event": "end", "reason": "complete", "finish_reason": "stop", "usage": {...}}
    {"error": "..."}      the run failed; an object with `message` will do as well

A line may have several of the first four, taken in the order thinking, text, tool, data. `reason` is `complete` (the
default), `incomplete` or `failed`, with a `message` that says why; any other word is taken as the finish reason of a
complete answer. All members of `end` but `event` may be missing. Blank lines keep the connection alive. Members that
are null or not named here are ignored; a line that has none of the above is a bad line. What follows the end counts for
nothing.
"""

from typing import Any, ClassVar

import msgspec

from gateway.domain.streams.dialects.dialect import DialectName
from gateway.domain.streams.dialects.json_lines import BadLine, provider_error, quoted, reason_in, text_in
from gateway.domain.streams.dialects.lines import LineDialect


class Line(msgspec.Struct, gc=False):
    text: Any = None
    thinking: Any = None
    tool: Any = None
    data: Any = None
    event: Any = None
    error: Any = None
    reason: Any = None
    message: Any = None
    finish_reason: Any = None
    usage: Any = None


_DECODER = msgspec.json.Decoder(Line)


class NdjsonDialect(LineDialect):
    _NAME: ClassVar = DialectName.NDJSON
    _MARKS: ClassVar = 'without {"event":"end"}'
    _IS_FRAMED: ClassVar = False

    def _take_payload(self, payload: bytes) -> None:
        line = self._decode(payload, _DECODER)
        if line.error is not None:
            raise provider_error(line.error)
        if line.event is not None:
            self._take_end(line, len(payload))
            return
        thinking, text = text_in(line.thinking, "thinking"), text_in(line.text, "text")
        for name, value in (("tool", line.tool), ("data", line.data)):
            if not isinstance(value, dict | None):
                raise BadLine(f"has a {name} that is no object")
        if line.thinking is line.text is line.tool is line.data is None:
            raise BadLine("has none of text, thinking, tool, data, event, error")
        self._add_thinking(thinking)
        self._add_text(text)
        if line.tool is not None:
            self._add_tool(line.tool, len(payload))
        if line.data is not None:
            self._add_data(line.data, len(payload))

    def _take_end(self, line: Line, line_bytes: int) -> None:
        if line.event != "end":
            raise BadLine("has an event that is not `end`")
        reason = reason_in(line.reason, "reason") or "complete"
        finish_reason = reason_in(line.finish_reason, "finish_reason")
        self._set_usage(line.usage, line_bytes)
        self._set_finish_reason(finish_reason)
        if reason in ("incomplete", "failed"):
            words = quoted(text_in(line.message, "message")) or "no message given"
            self._fail(f"line {self._line_number} ends the stream as {reason}: {words}", is_cut=reason == "incomplete")
        elif reason != "complete" and finish_reason is None:
            self._set_finish_reason(reason)
        self._set_done()


__all__ = ["NdjsonDialect"]
