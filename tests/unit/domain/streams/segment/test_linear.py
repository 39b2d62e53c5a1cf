"""Work grows as the text does, whatever the text (design.md 6); the soak tests measure how fast that is."""

import time
from collections.abc import Callable
from random import Random

import pytest

from gateway.domain.streams.segment import Segmenter, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import SHARDS, cut_text

UNITS = {
    "one giant word": "a",
    "ideographic full stops": "。",
    "dots": ".",
    "spaced dots": ". ",
    "line ends": "\n",
    "carriage returns": "\r",
    "spaces": " ",
    "combining marks": "\u0301",
    "flags": "🇳",
    "joined emoji": "👨\u200d",
    "viramas": "क्",
    "braces": "{",
    "openings of objects": '{"type":"code_block",',
    "escapes": "\\",
    "backticks": "`",
    "fences": "```\n",
    "closing quotes": '.")',
    "abbreviations": "Dr. ",
    "ideographs": "字",
    "indented items": "\t\n  - ",
}
MODES = {
    mode: SegmentOptions(mode=mode, pattern=r"[.!?。\n]\s*" if mode is SegmentMode.PATTERN else None)
    for mode in SegmentMode
}


def text_of(unit: str, size_bytes: int) -> str:
    return unit * (size_bytes // len(unit.encode()))


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("mode", [mode for mode in SegmentMode if mode is not SegmentMode.RAW])
@pytest.mark.parametrize("feed_chars", [7, 100_000])
def test_each_look_is_bounded_and_looks_are_few(mode: SegmentMode, unit: str, feed_chars: int) -> None:
    options = MODES[mode]
    looked_at: list[int] = []
    text = text_of(unit, 6_000)
    segmenter = Segmenter(options)
    find = segmenter._find

    def counted_find(held: str) -> int:
        looked_at.append(len(held))
        return find(held)

    segmenter._find = counted_find
    feeds = cut_text(text, range(0, len(text), feed_chars))
    segments = [segment for feed in feeds for segment in segmenter.feed(feed, 0)] + segmenter.flush()

    # The way of nearly every chunk asks once, a cut twice more, and once more for what is left.
    assert max(looked_at) <= options.max_bytes
    assert len(looked_at) <= 2 * (len(feeds) + len(segments)) + 2


def seconds_of(work: Callable[[], object]) -> float:
    """Of processor time; the better of two, since the machine has other work."""
    taken = []
    for _ in range(2):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.soak
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("mode", SegmentMode)
def test_a_megabyte_of_anything_takes_less_than_a_second(mode: SegmentMode, unit: str) -> None:
    text = text_of(unit, 1_000_000)
    if mode is SegmentMode.PATTERN and unit in (".", ". "):
        pytest.skip("a pattern that makes a segment of every byte or two costs what a million segments cost")

    assert seconds_of(lambda: Segmenter(MODES[mode]).feed(text, 0)) < 1


@pytest.mark.soak
@pytest.mark.parametrize("mode", SegmentMode)
def test_a_megabyte_of_everything_takes_less_than_a_second(mode: SegmentMode) -> None:
    text = "".join(Random(4).choices(SHARDS, k=250_000))

    assert len(text.encode()) > 1_000_000
    assert seconds_of(lambda: Segmenter(MODES[mode]).feed(text, 0)) < 1


@pytest.mark.soak
@pytest.mark.parametrize("mode", SegmentMode)
def test_ten_thousand_full_stops_one_by_one_take_less_than_a_second(mode: SegmentMode) -> None:
    def feed_each() -> None:
        segmenter = Segmenter(MODES[mode])
        for _ in range(10_000):
            segmenter.feed("。", 0)

    assert seconds_of(feed_each) < 1
