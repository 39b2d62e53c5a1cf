"""Mode `structure`: code blocks become typed segments; headings, list items and tables stay whole; the rest is sentences.

One state per phase of a line; `scan` is how far the held text is understood. What time or limit pushed out of a line that
is not understood yet is kept as `head` (at most 80 code points), so that a fence is known also when its line comes late.
A block keeps its number over any number of parts, restores and flushes, until its closing line or brace.
"""

import re
from enum import IntEnum
from typing import Any

import msgspec

from gateway.domain.streams.segment.graphemes import is_boundary
from gateway.domain.streams.segment.lines import Kind, closes, fence_of, kind_of, language_of, object_at
from gateway.domain.streams.segment.objects import ObjectEnd
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked
from gateway.domain.streams.segment.sentences import plain_line, sentence_end

_MAX_HEAD = 80
_GO_ON = -1
_blank_lines = re.compile(r"(?:[ \t]*\r?\n)++").match
_blank_line = re.compile(r"[ \t]*\r?\n").match
_indent = re.compile(r"[ \t]*").match
_object_language = re.compile(r'"lang(?:uage)?"\s*:\s*"([^"\\\n]{1,40})"').search


class Phase(IntEnum):
    LINE = 0
    """At the beginning of a line that is not understood yet."""
    FLOW = 1
    HEADING = 2
    ITEM = 3
    AFTER_ITEM = 4
    """At the beginning of the line after a line of an item, which may go on."""
    TABLE = 5
    AFTER_ROW = 6
    FENCE_INFO = 7
    """In the line that opens a block, part of which is out already."""
    CODE = 8
    OBJECT = 9


_WHOLE = {Kind.HEADING: Phase.HEADING, Kind.ITEM: Phase.ITEM, Kind.TABLE: Phase.TABLE}


class _State(msgspec.Struct, array_like=True):
    phase: Phase = Phase.LINE
    scan: int = 0
    head: str | None = ""
    """What is out of the line, or in FLOW of what may become an object, when held begins in it; None: too much to tell."""
    block: int = 0
    part: int = 0
    fence: str = ""
    fence_length: int = 0
    language: str | None = None
    is_closed: bool = False
    """The block ends at `scan`."""
    depth: int = 0
    in_string: bool = False
    is_escaped: bool = False


class StructureRule(Rule):
    def __init__(self) -> None:
        self._state = _State()
        self._steps = {
            Phase.LINE: self._line,
            Phase.FLOW: self._flow,
            Phase.HEADING: self._heading,
            Phase.ITEM: self._item,
            Phase.AFTER_ITEM: self._after_item,
            Phase.TABLE: self._row,
            Phase.AFTER_ROW: self._after_row,
            Phase.FENCE_INFO: self._fence_info,
            Phase.CODE: self._code,
            Phase.OBJECT: self._object,
        }

    def find(self, held: str) -> int:
        if self._state.is_closed:
            return self._state.scan
        while (end := self._steps[self._state.phase](held)) == _GO_ON:
            pass
        return end

    # Each step returns where the segment ends, 0 when that is open, _GO_ON when another phase has its turn.

    def _line(self, held: str) -> int:
        state = self._state
        start = state.scan
        if start == len(held):
            return 0
        if not start and not state.head and (plain := plain_line(held)):
            self._turn(Phase.FLOW)
            return plain.end()
        if held[start] in " \t\r\n" and (start or not state.head) and (blank := _blank_lines(held, start)):
            state.scan, state.head = blank.end(), ""
            return _GO_ON
        if state.head is None:
            return self._turn(Phase.FLOW)
        line = state.head + _line_at(held, start)
        kind = kind_of(line)
        match kind:
            case Kind.UNDECIDED:
                return 0
            case Kind.BLANK:
                state.scan, state.head = held.index("\n", start) + 1, ""
                return _GO_ON
            case Kind.FENCE:
                if start:
                    return start
                self._open(Phase.CODE, line)
                state.scan = held.index("\n") + 1
                return _GO_ON
            case Kind.OBJECT:
                brace = line.index("{")
                if (place := start + brace - len(state.head)) > 0:
                    return place
                return self._open_object(state.head[brace:])
            case _:
                return self._turn(_WHOLE.get(kind, Phase.FLOW))

    def _turn(self, phase: Phase) -> int:
        self._state.phase, self._state.head = phase, ""
        return _GO_ON

    def _flow(self, held: str) -> int:
        state = self._state
        if state.head:
            if not (match := object_at(state.head + held, 0)):
                return self._turn(Phase.FLOW)
            return 0 if match.partial else self._open_object(state.head)
        if (not state.scan or held[state.scan - 1] in " \t\r") and (blank := _blank_line(held)):
            state.phase, state.scan = Phase.LINE, blank.end()
            return _GO_ON
        end, scan = sentence_end(held, state.scan)
        limit = end or len(held)
        brace = state.scan - 1
        while (brace := held.find("{", brace + 1, limit)) >= 0:
            if not (match := object_at(held, brace)):
                continue
            if match.partial:
                state.scan = min(scan, brace)
                return 0
            if not brace:
                return self._open_object("")
            if is_boundary(held[brace - 1], "{"):
                return brace
        if not end:
            state.scan = scan
        return end

    def _heading(self, held: str) -> int:
        newline = held.find("\n", self._state.scan)
        if newline < 0:
            self._state.scan = len(held)
        return newline + 1

    def _item(self, held: str) -> int:
        return self._to_next_line(held, Phase.AFTER_ITEM)

    def _row(self, held: str) -> int:
        return self._to_next_line(held, Phase.AFTER_ROW)

    def _to_next_line(self, held: str, phase: Phase) -> int:
        state = self._state
        newline = held.find("\n", state.scan)
        if newline < 0:
            state.scan = len(held)
            return 0
        state.phase, state.scan = phase, newline + 1
        return _GO_ON

    def _after_item(self, held: str) -> int:
        start = self._state.scan
        indent = _indent(held, start).group()  # type: ignore[union-attr]
        at = start + len(indent)
        if at == len(held):
            return 0
        if indent in ("", " ") or held[at] in "\r\n":
            return start
        return self._goes_on(held, Kind.FLOW, Phase.ITEM)

    def _after_row(self, held: str) -> int:
        return self._goes_on(held, Kind.TABLE, Phase.TABLE)

    def _goes_on(self, held: str, kind: Kind, phase: Phase) -> int:
        start = self._state.scan
        next_kind = kind_of(_line_at(held, start))
        if next_kind is Kind.UNDECIDED:
            return 0
        return self._turn(phase) if next_kind is kind else start

    def _fence_info(self, held: str) -> int:
        state = self._state
        newline = held.find("\n", state.scan)
        if newline < 0:
            state.scan = len(held)
            return 0
        line = (state.head or "") + held[: newline + 1]
        state.scan = newline + 1
        if fence := fence_of(line):
            state.phase, state.head = Phase.CODE, ""
            state.fence, state.fence_length, state.language = fence[0], len(fence), language_of(line)
            return _GO_ON
        # A backtick came late: it was code within a line, and the block is that line.
        state.is_closed = True
        return state.scan

    def _code(self, held: str) -> int:
        state = self._state
        if (state.scan or state.head == "") and held.find(state.fence * 3, state.scan) < 0:
            if newline := held.rfind("\n", state.scan) + 1:
                state.scan = newline
            return 0
        while (newline := held.find("\n", state.scan)) >= 0:
            line = held[state.scan : newline + 1]
            head = "" if state.scan else state.head
            state.scan = newline + 1
            if head is not None and closes(head + line, state.fence, state.fence_length):
                state.is_closed = True
                return state.scan
        return 0

    def _object(self, held: str) -> int:
        state = self._state
        if state.depth or not state.scan:
            self._look(held)
            if state.depth:
                return 0
        end = state.scan
        while end < len(held) and not is_boundary(held[end - 1], held[end]):
            end += 1
        if end == len(held) and held[-1] != "\n":
            return 0
        state.scan, state.is_closed = end, True
        return end

    def _look(self, text: str) -> None:
        state = self._state
        follower = ObjectEnd(state.depth, state.in_string, state.is_escaped)
        state.scan = follower.look(text, state.scan)
        state.depth, state.in_string, state.is_escaped = follower.depth, follower.in_string, follower.is_escaped

    def _open(self, phase: Phase, line: str) -> None:
        state = self._state
        fence = fence_of(line)
        state.phase, state.block, state.part, state.scan, state.head = phase, state.block + 1, 0, 0, ""
        state.fence, state.fence_length, state.language = fence[:1], len(fence), language_of(line)

    def _open_object(self, out_already: str) -> int:
        """The object begins where the held text does, or before it with what is out already."""
        self._open(Phase.OBJECT, "")
        if out_already:
            self._look(out_already)
            self._state.scan = 0
        return _GO_ON

    def take(self, text: str, out: list[Segment]) -> None:
        state = self._state
        if state.is_closed:
            self._emit_code(text, True, out)
            return
        out.append(Segment(text))
        if state.phase is Phase.LINE:
            # Before a block: the white space that indents an object is part of its line.
            state.head = text[state.scan :]
        elif text[-1] == "\n" or state.phase is not Phase.FLOW:
            state.phase, state.head = Phase.LINE, ""
        state.scan = 0

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        state = self._state
        scan, length = state.scan, len(text)
        state.scan = max(0, scan - length)
        match state.phase:
            case Phase.LINE | Phase.AFTER_ITEM | Phase.AFTER_ROW:
                self._leave_line(text, scan, out)
            case Phase.FLOW:
                out.append(Segment(text))
                text = (state.head or "") + text
                brace = text.rfind("{")
                candidate = object_at(text, brace) if brace >= 0 else None
                state.head = text[brace:] if candidate and candidate.partial else ""
                state.scan = 0
            case Phase.FENCE_INFO:
                state.head = ((state.head or "") + text)[:_MAX_HEAD]
                state.language = language_of(state.head)
                self._emit_code(text, False, out)
            case Phase.CODE:
                state.head = "" if scan >= length else _joined("" if scan else state.head, text[scan:])
                is_last = at_end and bool(state.head) and closes(state.head or "", state.fence, state.fence_length)
                self._emit_code(text, is_last, out)
            case Phase.OBJECT:
                self._emit_code(text, state.depth == 0 and 0 < scan <= length, out)
            case _:
                out.append(Segment(text))

    def _leave_line(self, text: str, scan: int, out: list[Segment]) -> None:
        state = self._state
        if len(text) < scan:
            out.append(Segment(text))
            return
        head = "" if scan else state.head
        line = text[scan:]
        state.phase, state.head = Phase.LINE, _joined(head, line)
        if line and head is not None and fence_of(head + line):
            if scan:
                out.append(Segment(text[:scan]))
            self._open(Phase.FENCE_INFO, head + line)
            state.head = (head + line)[:_MAX_HEAD]
            self._emit_code(line, False, out)
            return
        out.append(Segment(text))

    def _emit_code(self, text: str, is_last: bool, out: list[Segment]) -> None:
        state = self._state
        state.part += 1
        if state.phase is Phase.OBJECT and state.language is None and (match := _object_language(text)):
            state.language = match[1]
        fields = {"block": state.block, "language": state.language, "part": state.part, "last": is_last}
        out.append(Segment(text, True, fields))
        if is_last:
            phase = Phase.LINE if text[-1] == "\n" else Phase.FLOW
            self._state = _State(phase=phase, block=state.block)

    def save(self) -> tuple[Any, ...]:
        return msgspec.structs.astuple(self._state)

    def load(self, values: Any, held: str) -> None:
        state = checked(values, _State)
        check_scan(state.scan, held)
        self._state = state


def _line_at(held: str, start: int) -> str:
    newline = held.find("\n", start)
    return held[start : newline + 1] if newline >= 0 else held[start:]


def _joined(head: str | None, more: str) -> str | None:
    return None if head is None or len(head) + len(more) > _MAX_HEAD else head + more


__all__ = ["StructureRule"]
