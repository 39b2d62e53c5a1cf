"""What a line of Markdown is, told from its beginning, as early as can be. Pure; called by the structure rule."""

import re
from enum import IntEnum

import regex

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)(?P<end>\n?)").match
_BLANK = re.compile(r"[ \t]*\r?\n").match
_HEADING = re.compile(r" {0,3}#{1,6}[ \t\r\n]").match
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]").match
_TABLE = re.compile(r" {0,3}\|").match
_UNDECIDED = re.compile(r"[ \t]*(?:`{1,2}|~{1,2}|#{1,6}|[-*+]|\d{1,9}[.)]?|\r)?").fullmatch
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\r?\n?").fullmatch
_OBJECT = regex.compile(r'\{\s{0,8}"type"\s{0,8}:\s{0,8}"code_block"\s{0,8}[,}]').match
_LANGUAGE = re.compile(r"[ \t]*([^\s{,]{1,40})").match


class Kind(IntEnum):
    UNDECIDED = 0
    BLANK = 1
    FLOW = 2
    HEADING = 3
    ITEM = 4
    TABLE = 5
    FENCE = 6
    OBJECT = 7


def kind_of(line: str) -> Kind:
    """`line` is from its beginning up to its newline, or as far as it is known."""
    if match := _FENCE(line):
        # A backtick after the fence makes it code within a line.
        if match["fence"][0] == "`" and "`" in match["info"]:
            return Kind.FLOW
        return Kind.FENCE if match["end"] else Kind.UNDECIDED
    if _UNDECIDED(line):
        return Kind.UNDECIDED
    if _ITEM(line):
        return Kind.ITEM
    if _HEADING(line):
        return Kind.HEADING
    if _TABLE(line):
        return Kind.TABLE
    if _BLANK(line):
        return Kind.BLANK
    indent = len(line) - len(line.lstrip(" "))
    if indent <= 3 and line[indent] == "{" and (match := object_at(line, indent)):
        return Kind.UNDECIDED if match.partial else Kind.OBJECT
    return Kind.FLOW


def object_at(text: str, at: int) -> "regex.Match[str] | None":
    """A code block object that begins at `at`; `partial` when it may become one."""
    return _OBJECT(text, at, partial=True)


def fence_of(line: str) -> str:
    """The fence that `line` opens or, as far as it is known, may open; else empty."""
    match = _FENCE(line)
    if match is None or (match["fence"][0] == "`" and "`" in match["info"]):
        return ""
    return match["fence"]


def language_of(line: str) -> str | None:
    """The first word after the fence: `python`."""
    match = _FENCE(line)
    language = match and _LANGUAGE(match["info"])
    return language[1] if language else None


def closes(line: str, fence: str, length: int) -> bool:
    """Whether `line` ends a block: the character that opened it, at least as often, and nothing else."""
    match = _CLOSING(line)
    return match is not None and match[1][0] == fence and len(match[1]) >= length


__all__ = ["Kind", "closes", "fence_of", "kind_of", "language_of", "object_at"]
