"""Where text may be cut: on graphemes, within a number of UTF-8 bytes.

Called with one segment's text at most, so that every cost is bounded. A grapheme is what `regex` calls one (UAX 29,
extended); ASCII has only one that is longer than a code point: CR LF.
"""

from bisect import bisect_right
from itertools import accumulate
from typing import Final

import regex

SPACE: Final = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space, for a character class; spelt out because `re` and `regex` disagree about control characters."""

_graphemes = regex.compile(r"\X").findall
_grapheme = regex.compile(r"\X").match
_last_break = regex.compile(rf"(?r)[{SPACE}，、；]").search
_may_grow = regex.compile(
    r"[\r\u200d\p{Extended_Pictographic}\p{Regional_Indicator}\p{GCB=Prepend}\p{GCB=L}\p{GCB=V}"
    r"\p{Emoji_Modifier}\p{InCB=Linker}\p{InCB=Consonant}]\Z"
).search


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def prefix_within(text: str, start: int, max_bytes: int) -> str:
    """The longest part of `text` from `start` that has at most `max_bytes` (>= 4) bytes; whole code points."""
    part = text[start : start + max_bytes]
    if part.isascii():
        return part
    encoded = part.encode()
    return part if len(encoded) <= max_bytes else encoded[:max_bytes].decode(errors="ignore")


def is_boundary(before: str, after: str) -> bool:
    """Whether two neighbouring code points are of two graphemes; exact unless `before` is within an emoji, a flag, or
    an Indic cluster."""
    return bool(_grapheme(before + after).end() == 1)


def boundaries(text: str) -> list[int]:
    """Where each grapheme of `text` ends."""
    return list(accumulate(map(len, _graphemes(text))))


def last_boundary(text: str, following: str) -> int:
    """The last place in `text` where no grapheme is cut, given what code point follows; 0: there is none."""
    if text.isascii() and following.isascii():
        return len(text) - (text[-1] == "\r" and following == "\n")
    ends = boundaries(text + following)
    at = bisect_right(ends, len(text))
    return ends[at - 1] if at else 0


def best_cut(text: str, following: str) -> int:
    """Where to cut a text that fills its limit; > 0. After the last line of its second half, else after the last word
    there, else on a grapheme; in a grapheme only when there is no other."""
    half = len(text) // 2
    if newline := text.rfind("\n", half) + 1:
        return newline
    if (match := _last_break(text, half)) is not None:
        cut: int = match.end()
        if is_boundary(text[cut - 1], (text + following)[cut]):
            return cut
    return last_boundary(text, following) or len(text)


def unfinished_tail(text: str) -> int:
    """Where the last grapheme begins if its kind often grows: an emoji, a flag, an Indic or Hangul syllable, a CR.
    Otherwise the length of `text`."""
    if text.isascii():
        return len(text) - (text[-1:] == "\r")
    if not _may_grow(text):
        return len(text)
    ends = boundaries(text)
    return ends[-2] if len(ends) > 1 else 0


__all__ = [
    "SPACE",
    "best_cut",
    "boundaries",
    "byte_length",
    "is_boundary",
    "last_boundary",
    "prefix_within",
    "unfinished_tail",
]
