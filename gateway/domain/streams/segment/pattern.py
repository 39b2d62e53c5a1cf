"""Mode `pattern`: a segment ends where a match of the operator's regular expression ends.

A match of no length cuts too: `(?=^## )` begins a segment at each heading. The pattern sees the held text only, from
where the last segment ended; it is tried at lengths that depend on the text alone (16 code points, then a quarter more
each time, and all of it when time or limit want it out), so that what is found does not depend on the feeds.
A pattern that once takes longer than 5 ms of processor time is given up for this text; lines are cut instead.
"""

from typing import TYPE_CHECKING, Any, Final

from gateway.domain.streams.segment.graphemes import boundaries
from gateway.domain.streams.segment.rule import Rule, Segment, check_scan, checked

if TYPE_CHECKING:
    import regex

_STEP: Final = 16
_TIMEOUT_SECONDS: Final = 0.005


class PatternRule(Rule):
    def __init__(self, pattern: "regex.Pattern[str]") -> None:
        self._pattern = pattern
        self._scan = 0
        self._ends: list[int] = []
        """Further ends found in one look, the last first, counted from the end of the segment before."""
        self.timeouts = 0

    def find(self, held: str) -> int:
        if self._ends:
            return self._ends[-1]
        if self.timeouts:
            return held.find("\n") + 1
        while (length := self._scan + max(_STEP, self._scan // 4)) <= len(held):
            if ends := self._look(held[:length]):
                self._ends = _as_lengths(ends)
                return self._ends[-1]
            if self.timeouts:
                return held.find("\n") + 1
            self._scan = length
        return 0

    def _look(self, text: str) -> list[int]:
        """Where matches end within `text`, on graphemes."""
        try:
            ends = {match.end() for match in self._pattern.finditer(text, timeout=_TIMEOUT_SECONDS)} - {0, len(text)}
        except TimeoutError:
            self.timeouts += 1
            return []
        if ends and not (text.isascii() and "\r" not in text):
            ends.intersection_update(boundaries(text))
        return sorted(ends)

    def take(self, text: str, out: list[Segment]) -> None:
        self._scan = 0
        if self._ends:
            self._ends.pop()
        out.append(Segment(text))

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        del at_end
        self._scan = 0
        ends = [] if self.timeouts else self._look(text)
        start = 0
        for end in [*ends, len(text)]:
            out.append(Segment(text[start:end]))
            start = end

    def save(self) -> tuple[Any, ...]:
        return (self._scan, self.timeouts)

    def load(self, values: Any, held: str) -> None:
        self._scan, self.timeouts = checked(values, tuple[int, int])
        check_scan(self._scan, held)


def _as_lengths(ends: list[int]) -> list[int]:
    return [end - start for start, end in zip([0, *ends], ends, strict=False)][::-1]


__all__ = ["PatternRule"]
