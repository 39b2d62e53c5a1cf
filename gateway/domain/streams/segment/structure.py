"""Mode `structure`: code blocks become typed segments; headings, items and tables stay whole; the rest is sentences.

One step per phase of a line; `scan` is how far the held text is understood. What time or limit pushed out of a line
that is not understood yet is kept as `head`, so that a fence is known also when its line comes late.
"""

import re
from enum import IntEnum
from typing import Any, Final

import msgspec

from gateway.domain.streams.segment.blocks import Block
from gateway.domain.streams.segment.graphemes import is_boundary
from gateway.domain.streams.segment.lines import Kind, fence_of, kind_of, object_at
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked
from gateway.domain.streams.segment.sentences import plain_line, sentence_end

_MAX_HEAD: Final = 80
"""Code points; longer than any beginning that leaves a line's kind open, but for white space and fences."""
_GO_ON: Final = -1
_blank_lines = re.compile(r"(?:[ \t]*\r?\n)++").match
_indent = re.compile(r"[ \t]*+")


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


_PHASE_OF = {Kind.FLOW: Phase.FLOW, Kind.HEADING: Phase.HEADING, Kind.ITEM: Phase.ITEM, Kind.TABLE: Phase.TABLE}


class _State(msgspec.Struct, array_like=True):
    phase: Phase
    scan: int
    head: str | None
    block: Block


class StructureRule(Rule):
    def __init__(self) -> None:
        self._phase = Phase.LINE
        self._scan = 0
        self._head: str | None = ""
        """What is out of the line, or in FLOW of what may become an object, in which the held text begins; None: too
        much to tell."""
        self._is_closed = False
        """The end of a block was found, and is about to be taken."""
        self._block = Block()
        # In the order of Phase. A step returns where the segment ends, 0 when that is open, _GO_ON for the next step.
        self._steps = (
            *(self._line, self._flow, self._heading, self._item, self._after_item, self._row, self._after_row),
            *(self._fence_info, self._code, self._object),
        )

    def find(self, held: str) -> int:
        while (end := self._steps[self._phase](held)) == _GO_ON:
            pass
        return end

    def _turn(self, phase: Phase, scan: int, head: str = "") -> int:
        self._phase, self._scan, self._head = phase, scan, head
        return _GO_ON

    def _line(self, held: str) -> int:
        start, head = self._scan, self._head
        if start == len(held):
            return 0
        if not start and not head and (plain := plain_line(held)):
            self._turn(Phase.FLOW, 0)
            return plain.end()
        if (start or not head) and held[start] in " \t\r\n" and (blank := _blank_lines(held, start)):
            return self._turn(Phase.LINE, blank.end())
        if head is None:
            return self._turn(Phase.FLOW, start)
        line = head + held[start:]
        match kind_of(line):
            case Kind.UNDECIDED:
                return 0
            case Kind.BLANK:
                return self._turn(Phase.LINE, held.index("\n", start) + 1)
            case Kind.FENCE:
                if start:
                    return start
                self._block.open_fence(line)
                return self._turn(Phase.CODE, held.index("\n") + 1)
            case Kind.OBJECT:
                brace = line.index("{")
                if (place := start + brace - len(head)) > 0:
                    return place
                return self._open_object(head[brace:])
            case Kind.FLOW if "\n" in head:
                return self._turn(Phase.LINE, 0, head.rpartition("\n")[2])
            case kind:
                return self._turn(_PHASE_OF[kind], start)

    def _flow(self, held: str) -> int:
        if self._head:
            if match := object_at(self._head + held, 0):
                return 0 if match.partial else self._open_object(self._head)
            _, newline, head = self._head.rpartition("\n")
            return self._turn(Phase.LINE, 0, head) if newline else self._turn(Phase.FLOW, 0)
        scan = self._scan
        if (not scan or held[scan - 1] in " \t\r") and held[0] in " \t\r\n" and (blank := _blank_lines(held)):
            return self._turn(Phase.LINE, blank.end())
        end, further = sentence_end(held, scan)
        limit = end or len(held)
        brace = scan - 1
        while (brace := held.find("{", brace + 1, limit)) >= 0:
            if not (match := object_at(held, brace)):
                continue
            if match.partial:
                self._scan = min(further, brace)
                return 0
            if not brace:
                return self._open_object("")
            if is_boundary(held[brace - 1], "{"):
                return brace
        if not end:
            self._scan = further
        return end

    def _open_object(self, out_already: str) -> int:
        self._block.open_object(out_already)
        return self._turn(Phase.OBJECT, 0)

    def _heading(self, held: str) -> int:
        newline = held.find("\n", self._scan)
        if newline < 0:
            self._scan = len(held)
        return newline + 1

    def _item(self, held: str) -> int:
        return self._to_next_line(held, Phase.AFTER_ITEM)

    def _row(self, held: str) -> int:
        return self._to_next_line(held, Phase.AFTER_ROW)

    def _to_next_line(self, held: str, phase: Phase) -> int:
        newline = held.find("\n", self._scan)
        if newline >= 0:
            return self._turn(phase, newline + 1)
        self._scan = len(held)
        return 0

    def _after_item(self, held: str) -> int:
        start = self._scan
        indent = _indent.match(held, start)
        if indent is None or indent.end() == len(held):
            return 0
        if indent.group() in ("", " "):
            return start
        return self._goes_on(held, Kind.FLOW, Phase.ITEM)

    def _after_row(self, held: str) -> int:
        return self._goes_on(held, Kind.TABLE, Phase.TABLE)

    def _goes_on(self, held: str, kind: Kind, phase: Phase) -> int:
        next_kind = kind_of(held[self._scan :])
        if next_kind is Kind.UNDECIDED:
            return 0
        return self._turn(phase, self._scan) if next_kind is kind else self._scan

    def _fence_info(self, held: str) -> int:
        newline = held.find("\n", self._scan)
        if newline < 0:
            self._scan = len(held)
            return 0
        if not self._block.learn_fence((self._head or "") + held[: newline + 1]):
            self._is_closed = True
            return newline + 1
        return self._turn(Phase.CODE, newline + 1)

    def _code(self, held: str) -> int:
        if self._is_closed:
            return self._scan
        end, self._scan = self._block.closing_line(held, self._scan, self._head)
        self._is_closed = end > 0
        return end

    def _object(self, held: str) -> int:
        end, self._scan = self._block.object_end(held, self._scan)
        self._is_closed = end > 0
        return end

    def take(self, text: str, out: list[Segment]) -> None:
        if self._is_closed:
            self._part(text, True, out)
            return
        out.append(Segment(text))
        self._turn(Phase.FLOW if self._phase is Phase.FLOW and text[-1] != "\n" else Phase.LINE, 0)

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        scan, length = self._scan, len(text)
        self._scan = max(0, scan - length)
        match self._phase:
            case Phase.LINE | Phase.AFTER_ITEM | Phase.AFTER_ROW:
                self._leave_line(text, scan, out)
            case Phase.FLOW:
                out.append(Segment(text))
                text = (self._head or "") + text
                brace = text.rfind("{")
                candidate = object_at(text, brace) if brace >= 0 else None
                self._head = text[brace:] if candidate and candidate.partial else ""
                self._scan = 0
            case Phase.FENCE_INFO:
                self._head = ((self._head or "") + text)[:_MAX_HEAD]
                self._block.learn_fence(self._head)
                self._part(text, False, out)
            case Phase.CODE:
                self._head = _joined("" if scan else self._head, text[scan:])
                self._part(text, at_end and self._block.is_closing(self._head), out)
            case Phase.OBJECT:
                self._part(text, self._block.depth == 0 and 0 < scan <= length, out)
            case _:
                out.append(Segment(text))

    def _leave_line(self, text: str, scan: int, out: list[Segment]) -> None:
        head, rest = "" if scan else self._head, text[scan:]
        self._phase, self._head = Phase.LINE, _joined(head, rest)
        if rest and head is not None and fence_of(head + rest):
            # What comes next cannot make it prose again, unless it is a backtick in the same line.
            if scan:
                out.append(Segment(text[:scan]))
            self._block.open_fence(head + rest)
            self._phase, self._head = Phase.FENCE_INFO, (head + rest)[:_MAX_HEAD]
            self._part(rest, False, out)
            return
        out.append(Segment(text))

    def _part(self, text: str, is_last: bool, out: list[Segment]) -> None:
        out.append(self._block.next_part(text, is_last))
        if is_last:
            self._is_closed = False
            self._turn(Phase.LINE if text[-1] == "\n" else Phase.FLOW, 0)

    def save(self) -> tuple[Any, ...]:
        return (self._phase, self._scan, self._head, self._block)

    def load(self, values: Any, held: str) -> None:
        state = checked(values, _State)
        check_scan(state.scan, held)
        self._phase, self._scan, self._head, self._block = state.phase, state.scan, state.head, state.block


def _joined(head: str | None, more: str) -> str | None:
    return None if head is None or len(head) + len(more) > _MAX_HEAD else head + more


__all__ = ["StructureRule"]
