"""Mode `sentence`: where sentences of Latin, Chinese, Japanese, Indic, Arabic and other scripts end, and lines.

A mark is judged when what follows is known. Closing quotes, brackets and white space stay with their sentence, and a
dot is no end in a decimal, an address, an abbreviation, an initial, an ellipsis, or before a small letter.
White space alone is no sentence: empty lines go with the next one.
"""

import re
from typing import Any

import regex

from gateway.domain.streams.segment.graphemes import SPACE, is_boundary
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked

_LINE_ENDS = "\n\r\x85\u2028\u2029"
_DOTS = ".…‥"
_SOFT = ".!?…‥"
"""They end a sentence only before white space or a character of a script without spaces."""
_HARD = "。｡．！？‼⁇⁈⁉؟۔।॥։።፧።၊။།༎។៕᠃᠉。"
"""They end a sentence whatever follows."""
_CLOSERS = r"\"')\]}*_`~”’»›」』﹂﹄）】〉》〕］｝｠〗〙〛＂＇"
"""Also the marks of emphasis: `**Done.** Next`."""
_OPENING_OR_CLOSING = "“‘«‹"
"""They close in German and Danish, and open elsewhere; white space after them tells."""

_candidate = re.compile(rf"[{_SOFT}{_HARD}{_LINE_ENDS}]").search
_tail = re.compile(
    rf"(?:[{_SOFT}{_HARD}](?:[{_SOFT}{_HARD}{_CLOSERS}\ufe0e\ufe0f]|[{_OPENING_OR_CLOSING}](?=[{SPACE}]))*+(?:(?![{_LINE_ENDS}])[{SPACE}])*+)++"
).match
_white = re.compile(rf"[{SPACE}]+").match
plain_line = re.compile(rf"[^\W\d_][^{_SOFT}{_HARD}{_LINE_ENDS}{{]*\n").match
"""A line that begins with a letter and has no mark in it: a sentence at first sight, also for the structure rule."""
_without_spaces = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}「『（《〈【]").match
_has_hard = re.compile(rf"[{_HARD}]").search
_marks = re.compile(rf"[^{_SOFT}]+").sub
_enumerator = re.compile(r"\d{1,3}|[a-z]").fullmatch
_dotted = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]").fullmatch
_OPENERS = "\"'([{*_`“‘«‹„‚¿¡"

# Small letters after the dot tell most abbreviations; these stand before capitals and numbers.
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\w+",
        "Mr Mrs Ms Mx Dr Prof St Sr Rev Hon Gen Col Maj Capt Lt Sgt Gov Sen Rep Pres Mt Ft Mme Mlle MM Hr Fr Sra Srta "
        "Dra Ud vs cf eg ie viz approx ca al bzw bspw evtl ggf vgl",
    )
)
_BEFORE_NUMBERS = frozenset(
    re.findall(
        r"\w+",
        "no nos nr fig figs eq eqs sec ch chap vol vols p pp art abs tab ref pág núm "
        "jan feb mar apr jun jul aug sep sept oct nov dec",
    )
)
_LOOK_BACK = 24


def sentence_end(held: str, scan: int) -> tuple[int, int]:
    """Where the first sentence of `held` ends (0: undecided), and where to look on from when there is more text."""
    if not scan and (match := plain_line(held)):
        return match.end(), 0
    if (scan == 0 or held[scan - 1].isspace()) and (white := _white(held)):
        scan = max(scan, white.end())
    while match := _candidate(held, scan):
        at = match.start()
        if held[at] in _LINE_ENDS:
            if held[at] != "\r":
                return at + 1, 0
            if at + 1 == len(held):
                return 0, at
            return at + 1 + (held[at + 1] == "\n"), 0
        tail = _tail(held, at)
        end = tail.end() if tail else at
        if tail is None or end == len(held) or (end + 1 == len(held) and held[end] in _OPENING_OR_CLOSING):
            return 0, at
        if _is_end(held, at, tail):
            return end, 0
        scan = end
    return 0, len(held)


def _is_end(held: str, at: int, tail: "re.Match[str]") -> bool:
    marks, following = tail.group(), held[tail.end()]
    if following in _LINE_ENDS or not is_boundary(marks[-1], following):
        return False  # the line's end is the end, marks and all
    if _has_hard(marks):
        return marks != "．" or not following.isdigit() or not held[at - 1 : at].isdigit()
    if not marks[-1].isspace() and not _without_spaces(following):
        return False
    only_marks = _marks("", marks)
    if not only_marks.strip(_DOTS):
        return only_marks == "." and not following.islower() and not _is_abbreviation(held, at, following)
    return not (following.islower() and len(marks.rstrip()) > len(only_marks))


def _is_abbreviation(held: str, at: int, following: str) -> bool:
    """Whether the dot at `at` belongs to what is before it: `Dr.`, `e.g.`, `J.`, or the number of a list's item."""
    before = held[max(0, at - _LOOK_BACK) : at]
    words = before.split()
    if not words or before[-1].isspace():
        return False
    word = words[-1].lstrip(_OPENERS)
    if len(words) == 1 and at < _LOOK_BACK and _enumerator(word):
        return True
    if len(word) == 1 and word.isupper():
        return word != "I"
    return word in _ABBREVIATIONS or (following.isdigit() and word.lower() in _BEFORE_NUMBERS) or bool(_dotted(word))


class SentenceRule(Rule):
    def __init__(self) -> None:
        self._scan = 0

    def find(self, held: str) -> int:
        end, self._scan = sentence_end(held, self._scan)
        return end

    def take(self, text: str, out: list[Segment]) -> None:
        self._scan = 0
        out.append(Segment(text))

    def save(self) -> tuple[Any, ...]:
        return (self._scan,)

    def load(self, values: Any, held: str) -> None:
        (self._scan,) = checked(values, tuple[int])
        check_scan(self._scan, held)


__all__ = ["SentenceRule", "plain_line", "sentence_end"]
