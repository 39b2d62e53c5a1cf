"""The code block of a text: which one it is, where it ends, and its parts. Called by the structure rule.

A block keeps its number over any number of parts, restores and flushes, until its closing line or brace.
"""

from typing import Any

import msgspec

from gateway.domain.streams.segment.graphemes import is_boundary
from gateway.domain.streams.segment.lines import closes, fence_of, language_of, object_language
from gateway.domain.streams.segment.objects import ObjectEnd
from gateway.domain.streams.segment.rule import Segment


class Block(msgspec.Struct, array_like=True):
    """The open block, or the last one. Methods that look for an end return (end, where to look on); end 0: not yet."""

    number: int = 0
    part: int = 0
    """How many parts of it are out."""
    fence: str = ""
    """The character of its fence; empty: it is an object."""
    fence_length: int = 0
    language: str | None = None
    depth: int = 0
    in_string: bool = False
    is_escaped: bool = False

    def open_fence(self, line: str) -> None:
        """`line` opens the next block; what is not known of it yet is told to `learn_fence`."""
        self.number += 1
        self.part = 0
        self.learn_fence(line)

    def learn_fence(self, line: str) -> bool:
        """False when `line` turns out to open no block: a backtick came late, and it is code within a line."""
        if not (fence := fence_of(line)):
            return False
        self.fence, self.fence_length, self.language = fence[0], len(fence), language_of(line)
        return True

    def open_object(self, out_already: str) -> None:
        """`out_already` is what is out of the object, as text."""
        self.number += 1
        self.part = 0
        self.fence, self.fence_length, self.language = "", 0, None
        if out_already:
            self._follow(out_already, 0)

    def closing_line(self, held: str, scan: int, head: str | None) -> tuple[int, int]:
        """At `scan` a line begins, or at 0 the rest of one that began with `head` (None: too long to close it)."""
        if (scan or head == "") and held.find(self.fence * 3, scan) < 0:
            return 0, held.rfind("\n", scan) + 1 or scan
        while (newline := held.find("\n", scan)) >= 0:
            line, began = held[scan : newline + 1], "" if scan else head
            scan = newline + 1
            if began is not None and closes(began + line, self.fence, self.fence_length):
                return scan, scan
        return 0, scan

    def is_closing(self, line: str | None) -> bool:
        """Whether `line` would close the block if it ended here."""
        return bool(line) and closes(line or "", self.fence, self.fence_length)

    def object_end(self, held: str, scan: int) -> tuple[int, int]:
        """A brace is the end only when it is known that no mark is put on it."""
        if self.depth or not scan:
            scan = self._follow(held, scan)
            if self.depth:
                return 0, scan
        end = scan
        while end < len(held) and not is_boundary(held[end - 1], held[end]):
            end += 1
        return (0 if end == len(held) and held[-1] != "\n" else end), scan

    def _follow(self, text: str, scan: int) -> int:
        follower = ObjectEnd(self.depth, self.in_string, self.is_escaped)
        scan = follower.look(text, scan)
        self.depth, self.in_string, self.is_escaped = follower.depth, follower.in_string, follower.is_escaped
        return scan

    def next_part(self, text: str, is_last: bool) -> Segment:
        self.part += 1
        if not self.fence and self.language is None:
            self.language = object_language(text)
        fields: dict[str, Any] = {"block": self.number, "language": self.language, "part": self.part, "last": is_last}
        return Segment(text, True, fields)


__all__ = ["Block"]
