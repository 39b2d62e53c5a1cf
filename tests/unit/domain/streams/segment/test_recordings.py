"""Recorded answers and reasoning of providers, and our own samples, under every mode."""

from pathlib import Path

import pytest

from gateway.domain.streams.segment import Segmenter, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import cut_text, run

ROOT = Path(__file__).parents[5]
RECORDINGS = [
    *sorted((ROOT / "gateway" / "samples").glob("*.md")),
    # Recordings of others are used where they are, and are no part of this repository.
    *sorted((ROOT.parent / "shared" / "llm-streams").glob("*.text")),
    *sorted((ROOT.parent / "shared" / "llm-streams").glob("*.reasoning")),
]
OPTIONS = [SegmentOptions(mode=mode, pattern=r"\n\s*" if mode is SegmentMode.PATTERN else None) for mode in SegmentMode]


@pytest.mark.parametrize("options", OPTIONS, ids=[options.mode for options in OPTIONS])
@pytest.mark.parametrize("path", RECORDINGS, ids=[path.name for path in RECORDINGS])
def test_a_recorded_text_is_exact_however_it_comes(path: Path, options: SegmentOptions) -> None:
    text = path.read_bytes().decode()
    feeds = cut_text(text, range(0, len(text), 5))

    segments = run(options, feeds)

    assert "".join(segment.text for segment in segments).encode() == path.read_bytes()
    if options.mode is not SegmentMode.RAW:
        assert segments == run(options, [text])


@pytest.mark.parametrize("options", OPTIONS, ids=[options.mode for options in OPTIONS])
@pytest.mark.parametrize("path", RECORDINGS, ids=[path.name for path in RECORDINGS])
def test_a_recorded_text_is_exact_token_by_token_at_changing_gateways(path: Path, options: SegmentOptions) -> None:
    """Thirty tokens a second: the delay ends most segments, and each tick is at another gateway."""
    text = path.read_bytes().decode()
    segmenter, segments = Segmenter(options), []
    for step, feed in enumerate(cut_text(text, range(0, len(text), 5))):
        now = step * 33.0
        while (due := segmenter.due_ms()) is not None and due <= now:
            segments += segmenter.tick(now)
        segments += segmenter.feed(feed, now)
        if step % 7 == 0:
            segmenter = Segmenter(options, segmenter.save())
    segments += segmenter.flush()

    assert "".join(segment.text for segment in segments) == text
