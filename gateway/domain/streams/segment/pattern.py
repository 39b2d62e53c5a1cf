"""Mode `pattern`: a segment ends where a match of the operator's regular expression ends.

A match of no length cuts too: `(?=^## )` begins a segment at each heading. The pattern sees the held text only, from
where the last segment ended; it is tried at lengths that depend on the text alone (16 code points, then a quarter more
each time, and all of it when time or limit want it out), so that what is found does not depend on the feeds.
A pattern that twice takes longer than 10 ms of processor time is given up for this text; lines are cut instead.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gateway.domain.streams.segment.graphemes import boundaries
from gateway.domain.streams.segment.options import PATTERN_TIMEOUT_SECONDS
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked

if TYPE_CHECKING:
    import regex

_STEP: Final = 16
_ATTEMPTS: Final = 2
"""The second forgives a machine that was held up."""


class PatternRule(Rule):
    def __init__(self, pattern: "regex.Pattern[str]", on_timeout: Callable[[], None]) -> None:
        self._on_timeout = on_timeout
        self._find = pattern.finditer
        self._scan = 0
        self._ends: list[int] = []
        """Where segments end in the text that `take` gets next."""
        self.timeouts = 0

    def find(self, held: str) -> int:
        while not self.timeouts and (length := self._scan + max(_STEP, self._scan // 4)) <= len(held):
            if self._ends or self._look(held[:length]):
                return self._ends[-1]
            self._scan = length
        return held.find("\n") + 1 if self.timeouts else 0

    def _look(self, text: str) -> bool:
        """Whether matches end within `text`, on graphemes; they are in `_ends`."""
        ends = self._match_ends(text)
        if ends and ("\r" in text or not text.isascii()):
            ends.intersection_update(boundaries(text))
        self._ends = sorted(ends)
        return bool(ends)

    def _match_ends(self, text: str) -> set[int]:
        for _ in range(_ATTEMPTS):
            try:
                return {match.end() for match in self._find(text, timeout=PATTERN_TIMEOUT_SECONDS)} - {0, len(text)}
            except TimeoutError:
                continue
        self.timeouts += 1
        self._on_timeout()
        return set()

    def take(self, text: str, out: list[Segment]) -> None:
        start, ends = 0, self._ends
        self._scan, self._ends = 0, []
        for end in ends[:-1]:
            out.append(Segment(text[start:end]))
            start = end
        out.append(Segment(text[start:]))

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        del at_end
        if not self.timeouts:
            self._look(text)
        self._ends.append(len(text))
        self.take(text, out)

    def save(self) -> tuple[Any, ...]:
        return (self._scan, self.timeouts)

    def load(self, values: Any, held: str) -> None:
        self._scan, self.timeouts = checked(values, tuple[int, int])
        check_scan(self._scan, held)


__all__ = ["PatternRule"]
