"""Writes the table by which the JavaScript SDK cuts on graphemes, from the Unicode data that the gateway cuts by.

Browsers bring the Unicode of their year; with this table a page cuts where the server does. Run it after `make lock`;
a test fails while the table is of another `regex` package.
"""

import sys
from pathlib import Path

import regex

TABLE = Path(__file__).parent.parent / "sdk/js/src/segmenter/grapheme_table.ts"

# In the order of GraphemeClass in graphemes.ts; a code point is of the first class that it matches. Hangul syllables
# are computed there, and ASCII is not looked up.
_CLASSES = (
    ("control", r"\p{GCB=Control}"),
    ("linker", r"[\p{GCB=Extend}&&\p{InCB=Linker}]"),
    ("joining", r"[\p{GCB=Extend}&&\p{InCB=Extend}]"),
    ("extend", r"\p{GCB=Extend}"),
    ("prepend", r"\p{GCB=Prepend}"),
    ("spacing_mark", r"\p{GCB=SpacingMark}"),
    ("l", r"\p{GCB=L}"),
    ("v", r"\p{GCB=V}"),
    ("t", r"\p{GCB=T}"),
    ("regional", r"\p{GCB=RI}"),
    ("pictograph", r"\p{Extended_Pictographic}"),
    ("consonant", r"\p{InCB=Consonant}"),
)
_FIRST, _SURROGATES, _HANGUL_SYLLABLES, _JOINER = 0x80, range(0xD800, 0xE000), range(0xAC00, 0xD7A4), 0x200D
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def _class_of(character: str, patterns: list["regex.Pattern[str]"]) -> int:
    return next((index for index, pattern in enumerate(patterns) if pattern.match(character)), -1)


def rows() -> list[tuple[int, int, int]]:
    """First code point, how many, which class."""
    patterns = [regex.compile(pattern, regex.V1) for _, pattern in _CLASSES]
    out: list[tuple[int, int, int]] = []
    for code in range(_FIRST, 0x110000):
        if code in _SURROGATES or code in _HANGUL_SYLLABLES or code == _JOINER:
            continue
        kind = _class_of(chr(code), patterns)
        if kind < 0:
            continue
        if out and out[-1][2] == kind and out[-1][0] + out[-1][1] == code:
            out[-1] = (out[-1][0], out[-1][1] + 1, kind)
        else:
            out.append((code, 1, kind))
    return out


def table() -> str:
    """A range is: class letter, gap to the end of the range before, then `.` and its length unless that is 1."""
    entries, end = [], 0
    for first, length, kind in rows():
        entries.append(f"{chr(ord('A') + kind)}{_base36(first - end)}{'.' + _base36(length) if length > 1 else ''}")
        end = first + length
    text = "".join(entries)
    lines = "\n".join(f'  "{text[at : at + 110]}" +' for at in range(0, len(text), 110)).removesuffix(" +")
    return (
        "// Written by tools/grapheme_table.py: the grapheme classes of the Unicode that the gateway cuts by.\n\n"
        "/** Ranges in order: a letter for the class, the gap to the range before, its length where that is not 1. */\n"
        f"export const GRAPHEME_RANGES =\n{lines};\n"
    )


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if TABLE.read_text("utf-8") == table() else "the grapheme table is old: run tools/grapheme_table.py")
    TABLE.write_text(table(), "utf-8")
