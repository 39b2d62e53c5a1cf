r"""Mode `tokens`: a segment is so many word-like tokens. The hot path of the gateway.

A provider's tokens cannot be seen in its bytes, so we count what is about as long, by a rule that does not depend on
how the text arrived. A token is, with up to 15 white-space graphemes before it: a word or number of up to 16 graphemes
(a longer one counts again), or one character of Chinese or Japanese, or up to 16 marks and symbols in a row, or white
space beyond the 15. `Hello, world 你好` has five: `Hello`, `,`, ` world`, ` 你`, `好`.
"""

import re
from typing import Any

import regex

from gateway.domain.streams.segment.graphemes import SPACE
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked

_SCRIPTS_WITHOUT_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}"

# Nothing here goes back (possessive), so the time is linear. A token counts once something follows that is not in it.
_ascii_token = re.compile(
    r"(?:\r\n|[\t-\r ]){0,15}+(?:[0-9A-Z_a-z]{1,16}+|[^\t-\r 0-9A-Z_a-z]{1,16}+|\r\n|[\t-\r ])(?=[\s\S])"
).match
_any_token = regex.compile(
    rf"(?:(?=[{SPACE}])\X){{0,15}}+(?:(?=[{_SCRIPTS_WITHOUT_SPACES}])\X|(?:(?=\w)(?![{_SCRIPTS_WITHOUT_SPACES}])\X){{1,16}}+"
    rf"|(?:(?![{SPACE}\w])\X){{1,16}}+|(?=[{SPACE}])\X)(?=[\s\S])"
).match


class TokenRule(Rule):
    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._seen = 0
        self._scan = 0

    def find(self, held: str) -> int:
        match_token = _ascii_token if held.isascii() else _any_token
        scan, seen = self._scan, self._seen
        while match := match_token(held, scan):
            scan = match.end()
            seen += 1
            if seen == self._tokens:
                return scan
        self._scan, self._seen = scan, seen
        return 0

    def take(self, text: str, out: list[Segment]) -> None:
        self._seen = self._scan = 0
        out.append(Segment(text))

    def save(self) -> tuple[Any, ...]:
        return (self._seen, self._scan)

    def load(self, values: Any, held: str) -> None:
        self._seen, self._scan = checked(values, tuple[int, int])
        check_scan(self._scan, held)
        if not 0 <= self._seen < self._tokens:
            raise ValueError(f"{self._seen} tokens seen of {self._tokens}")


__all__ = ["TokenRule"]
