"""What a line of Markdown is, told from its beginning, as early as can be. Pure; called by the structure rule."""

import re
from enum import IntEnum

import regex

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)(?P<end>\n?)").match
_CLOSING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*\r?\n?").fullmatch
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?P<end>[ \t]?)").match
_ITEM_MAYBE = re.compile(r"[-*+]|\d{1,9}[.)]?").fullmatch
_HEADING = re.compile(r"#{1,6}(?P<end>[ \t\r\n]|\Z)").match
_OBJECT = regex.compile(r'\{\s{0,8}"type"\s{0,8}:\s{0,8}"code_block"\s{0,8}[,}]').match
_LANGUAGE = re.compile(r"[ \t]*([^\s{,]{1,40})").match
_OBJECT_LANGUAGE = re.compile(r'"lang(?:uage)?"\s*:\s*"([^"\\\n]{1,40})"').search
_TELLING = frozenset("`~#-*+0123456789|{\r\n")
_MAX_INDENT = 3


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
    """`line` begins with the line, and goes on as far as the text is known. What is told of it stays true."""
    text = line.lstrip(" \t")
    if not text:
        return Kind.UNDECIDED
    first = text[0]
    if first not in _TELLING:
        return Kind.FLOW
    if first in "\r\n":
        return _kind_of_blank(text)
    if first in "-*+0123456789":
        return _kind_of_item(text)
    indent = len(line) - len(text)
    if indent > _MAX_INDENT or "\t" in line[:indent]:
        return Kind.FLOW
    if first == "|":
        return Kind.TABLE
    if first == "#":
        heading = _HEADING(text)
        return Kind.FLOW if heading is None else Kind.HEADING if heading["end"] else Kind.UNDECIDED
    if first == "{":
        match = object_at(text, 0)
        return Kind.FLOW if match is None else Kind.UNDECIDED if match.partial else Kind.OBJECT
    return _kind_of_fence(text)


def _kind_of_blank(text: str) -> Kind:
    if text == "\r":
        return Kind.UNDECIDED
    return Kind.BLANK if text.startswith(("\n", "\r\n")) else Kind.FLOW


def _kind_of_item(text: str) -> Kind:
    match = _ITEM(text)
    if match and match["end"]:
        return Kind.ITEM
    return Kind.UNDECIDED if _ITEM_MAYBE(text) else Kind.FLOW


def _kind_of_fence(text: str) -> Kind:
    match = _FENCE(text)
    if match is None:
        return Kind.UNDECIDED if text in ("`", "``", "~", "~~") else Kind.FLOW
    if match["fence"][0] == "`" and "`" in match["info"]:
        return Kind.FLOW  # code within a line
    return Kind.FENCE if match["end"] else Kind.UNDECIDED


def object_at(text: str, at: int) -> "regex.Match[str] | None":
    """A code block object that begins at `at`; `partial` when it may become one."""
    return _OBJECT(text, at, partial=True)


def fence_of(line: str) -> str:
    """The fence that a line opens or, as far as it is known, may open; else empty."""
    match = _FENCE(line)
    if match is None or (match["fence"][0] == "`" and "`" in match["info"]):
        return ""
    return match["fence"]


def language_of(line: str) -> str | None:
    """The first word after the fence: `python`."""
    match = _FENCE(line)
    language = match and _LANGUAGE(match["info"])
    return language[1] if language else None


def object_language(text: str) -> str | None:
    """What a code block object, or a part of one, says in its `language` or `lang`."""
    match = _OBJECT_LANGUAGE(text)
    return match[1] if match else None


def closes(line: str, fence: str, length: int) -> bool:
    """Whether `line` ends a block: the character that opened it, at least as often, and nothing else."""
    match = _CLOSING(line)
    return match is not None and match[1][0] == fence and len(match[1]) >= length


__all__ = ["Kind", "closes", "fence_of", "kind_of", "language_of", "object_at", "object_language"]
