"""Follows a JSON object through any pieces of text to its closing brace. Keeps three small values, never the text."""

import re
from typing import Final

_outside = re.compile(r'[^"{}]*').match
_inside = re.compile(r'[^"\\\n]*').match

MAX_DEPTH: Final = 10_000
"""Deeper is no object that anybody wrote; it ends there."""


class ObjectEnd:
    """`depth` is 0 once the object is over; `is_broken` when that is because it is no JSON: a line end in a string."""

    def __init__(self, depth: int = 0, in_string: bool = False, is_escaped: bool = False) -> None:
        self.depth = depth
        self.in_string = in_string
        self.is_escaped = is_escaped

    def look(self, text: str, scan: int) -> int:
        """Go on from `scan`: where the object ends, or the end of the text while `depth` is not 0."""
        end = len(text)
        while scan < end:
            if self.is_escaped and text[scan] != "\n":
                self.is_escaped = False
                scan += 1
                continue
            scan = (_inside if self.in_string else _outside)(text, scan).end()  # type: ignore[union-attr]
            if scan == end:
                break
            mark = text[scan]
            scan += 1
            if mark == '"':
                self.in_string = not self.in_string
            elif mark == "\\":
                self.is_escaped = True
            elif mark == "{":
                self.depth += 1
            elif mark == "}":
                self.depth -= 1
            if mark == "\n" or self.depth == 0 or self.depth > MAX_DEPTH:
                self.depth = 0
                self.in_string = self.is_escaped = False
                return scan
        return scan


__all__ = ["MAX_DEPTH", "ObjectEnd"]
