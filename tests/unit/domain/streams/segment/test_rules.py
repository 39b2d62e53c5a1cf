"""The contract between the segmenter and its rules."""

from hypothesis import given, settings

from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions
from gateway.domain.streams.segment.rule import Rule
from tests.unit.domain.streams.segment.test_properties import PLACES
from tests.unit.domain.streams.segment.texts import ANY_TEXTS, OPTIONS, SHARD_TEXTS, cut_text


class WatchedRule(Rule):
    """Passes everything on, and sees that the held text only ever grows until its beginning leaves."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._seen = ""

    def find(self, held: str) -> int:
        assert held.startswith(self._seen)
        self._seen = held
        end = self._rule.find(held)
        assert end == self._rule.find(held)
        return end

    def force(self, held: str, following: str) -> int:
        assert held == self._seen
        return self._rule.force(held, following)

    def take(self, text: str, out: list[Segment]) -> None:
        assert self._seen.startswith(text)
        self._seen = self._seen[len(text) :]
        self._rule.take(text, out)

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        assert self._seen.startswith(text)
        self._seen = self._seen[len(text) :]
        self._rule.leave(text, at_end, out)


@settings(max_examples=200)
@given(
    OPTIONS.filter(lambda options: options.mode is not SegmentMode.RAW),
    ANY_TEXTS | SHARD_TEXTS.map(lambda text: text * 9),
    PLACES,
)
def test_a_rule_is_never_shown_less_than_it_has_seen(options: SegmentOptions, text: str, places: list[int]) -> None:
    segmenter = Segmenter(options)
    segmenter._rule = WatchedRule(segmenter._rule)
    segmenter._find = segmenter._rule.find

    for step, feed in enumerate(cut_text(text, places)):
        segmenter.feed(feed, step * 40.0)
        segmenter.tick(step * 40.0)
    segmenter.flush()

    assert segmenter.held_bytes == 0


def test_a_rule_is_shown_all_that_it_has_seen_also_after_a_cut_by_force() -> None:
    """Many bytes to a character, and a cut in the middle of what was seen."""
    segmenter = Segmenter(SegmentOptions(mode=SegmentMode.STRUCTURE))
    segmenter._rule = WatchedRule(segmenter._rule)
    segmenter._find = segmenter._rule.find

    text = "- " + "x" * 600 + " " + "x" * 400 + "字" * 600
    segments = [segment for feed in text for segment in segmenter.feed(feed, 0)] + segmenter.flush()

    assert "".join(segment.text for segment in segments) == text
