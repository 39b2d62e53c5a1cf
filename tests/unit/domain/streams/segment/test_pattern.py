"""Mode `pattern`: a segment ends where a match ends, in bounded time."""

from collections.abc import Iterator
from typing import Any

import pytest
import regex

from gateway.domain.streams.segment import Segmenter, SegmentMode, SegmentOptions
from gateway.domain.streams.segment.pattern import PatternRule
from tests.unit.domain.streams.segment.texts import run, texts_of

CATASTROPHE = r"(?:a|a)*[!?]"


def pattern(expression: str) -> SegmentOptions:
    return SegmentOptions(mode=SegmentMode.PATTERN, pattern=expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"\n-{3,}\n", ["## One\nfirst\n---\n", "## Two\nsecond"]),
        (r"(?m)(?=^## )", ["## One\nfirst\n---\n", "## Two\nsecond"]),
        (r"\n+", ["## One\n", "first\n", "---\n", "## Two\n", "second"]),
        (r"never", ["## One\nfirst\n---\n## Two\nsecond"]),
    ],
)
def test_a_segment_ends_where_a_match_ends(expression: str, expected: list[str]) -> None:
    assert texts_of("pattern", "## One\nfirst\n---\n## Two\nsecond", pattern=expression) == expected


def test_what_is_due_is_cut_by_the_pattern_too() -> None:
    segmenter = Segmenter(pattern(";"))

    assert segmenter.feed("a;b;c", 0) == []
    assert [segment.text for segment in segmenter.tick(0)] == ["a;", "b;", "c"]


def test_a_match_within_a_grapheme_does_not_cut() -> None:
    assert texts_of("pattern", "xe\u0301xe" + "y" * 20, pattern="e") == ["xe\u0301xe", "y" * 20]


def test_a_catastrophic_pattern_is_given_up_and_lines_are_cut() -> None:
    text = "a" * 200 + "c\nline\n"
    segmenter = Segmenter(pattern(CATASTROPHE))

    segments = [*segmenter.feed(text, 0), *segmenter.feed("more\n", 0)]

    assert [segment.text for segment in segments] == ["a" * 200 + "c\n", "line\n", "more\n"]
    assert segmenter.pattern_timeouts == 1


def test_a_pattern_that_was_given_up_stays_so_on_another_gateway() -> None:
    first = Segmenter(pattern(CATASTROPHE))
    first.feed("a" * 200, 0)
    second = Segmenter(pattern(CATASTROPHE), first.save())

    assert [segment.text for segment in second.feed("\n", 0)] == ["a" * 200 + "\n"]
    assert second.pattern_timeouts == 1


class HeldUpOnce:
    """A pattern whose first attempt is not done in time."""

    def __init__(self, pattern: str) -> None:
        self._pattern = regex.compile(pattern)
        self.calls = 0

    def finditer(self, text: str, timeout: float) -> Iterator[Any]:
        self.calls += 1
        if self.calls == 1:
            raise TimeoutError
        return self._pattern.finditer(text, timeout=timeout)


def test_a_machine_that_was_held_up_once_is_forgiven() -> None:
    pattern_once = HeldUpOnce(";")
    rule = PatternRule(pattern_once, lambda: None)

    assert rule.find("one;" + "x" * 12) == 4
    assert (rule.timeouts, pattern_once.calls) == (0, 2)


def test_an_older_character_is_not_kept_back_for_a_younger_one() -> None:
    """The cut comes late, and what is held then began before it."""
    segmenter = Segmenter(SegmentOptions(mode=SegmentMode.PATTERN, pattern=";", first_immediately=False))
    segmenter.feed("a;bcdefghijklm👨", 0)
    cut = segmenter.feed("\u200d", 50)

    assert [segment.text for segment in cut] == ["a;"]
    assert segmenter.due_ms() == 60
    assert [segment.text for segment in segmenter.tick(60)] == ["bcdefghijklm👨\u200d"]


def test_a_harmless_pattern_is_never_given_up() -> None:
    segmenter = Segmenter(pattern(r"[.!?]\s+"))
    segmenter.feed("Some words and a sentence. " * 10_000, 0)

    assert segmenter.pattern_timeouts == 0
    assert len(run(pattern(r"[.!?]\s+"), ["A b. " * 100])) == 100
