"""What holds for any text, any feeds and any options: failure catalogue L01, design.md 6."""

import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.streams.segment import MAX_STATE_BYTES, Segment, Segmenter, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import ANY_TEXTS, OPTIONS, cut_text, run

PLACES = st.lists(st.integers(0, 2_000), max_size=12)
INVARIANT = OPTIONS.filter(lambda options: options.mode is not SegmentMode.RAW)


@given(OPTIONS, ANY_TEXTS, PLACES)
def test_segments_join_to_the_text_and_none_is_empty(options: SegmentOptions, text: str, places: list[int]) -> None:
    segments = run(options, cut_text(text, places))

    assert "".join(segment.text for segment in segments) == text
    assert all(segment.text for segment in segments)


@settings(max_examples=300)
@given(INVARIANT, ANY_TEXTS, PLACES)
def test_segments_do_not_depend_on_the_feeds(options: SegmentOptions, text: str, places: list[int]) -> None:
    whole = run(options, [text])

    assert run(options, cut_text(text, places)) == whole
    assert run(options, list(text)) == whole


@given(INVARIANT, ANY_TEXTS)
def test_no_grapheme_is_cut_unless_it_is_above_the_limit(options: SegmentOptions, text: str) -> None:
    places, start = set(), 0
    for segment in run(options, [text]):
        start += len(segment.text)
        places.add(start)

    for grapheme in regex.finditer(r"\X", text):
        if len(grapheme.group().encode()) <= options.max_bytes:
            # What follows a grapheme that was cut by force is judged anew from there.
            inside = places & set(range(grapheme.start() + 1, grapheme.end()))
            assert not inside


@given(OPTIONS, ANY_TEXTS, PLACES)
def test_what_is_held_and_saved_is_bounded(options: SegmentOptions, text: str, places: list[int]) -> None:
    segmenter = Segmenter(options)
    for feed in cut_text(text, places):
        segmenter.feed(feed, 0.0)

        assert segmenter.held_bytes <= options.max_bytes
        assert len(segmenter.save()) <= MAX_STATE_BYTES


# A feed, a tick, a flush, or a move to another gateway.
STEPS = st.lists(st.sampled_from(["feed", "feed", "feed", "tick", "flush", "move"]), max_size=30)


@settings(max_examples=300)
@given(OPTIONS, ANY_TEXTS, PLACES, STEPS, st.lists(st.sampled_from([0, 1, 20, 61, 1_000]), min_size=30, max_size=30))
def test_moving_to_another_segmenter_changes_nothing(
    options: SegmentOptions, text: str, places: list[int], steps: list[str], waits: list[int]
) -> None:
    stays, moves = Segmenter(options), Segmenter(options)
    expected: list[Segment] = []
    moved: list[Segment] = []
    feeds, now = cut_text(text, places), 0.0
    for step, wait in zip(steps, waits, strict=False):
        now += wait
        if step == "feed" and feeds:
            feed = feeds.pop(0)
            expected += stays.feed(feed, now)
            moved += moves.feed(feed, now)
        elif step == "flush":
            expected += stays.flush()
            moved += moves.flush()
        elif step == "tick" and wait >= 61:
            # Later than anything that may be kept back: what a restored segmenter knows of times is less.
            expected += stays.tick(now)
            moved += moves.tick(now)
        elif step == "move":
            moves = Segmenter(options, moves.save())
        assert moved == expected
    rest = "".join(feeds)
    expected += [*stays.feed(rest, now), *stays.flush()]
    moved += [*moves.feed(rest, now), *moves.flush()]

    assert moved == expected
    assert "".join(segment.text for segment in moved) == text


@given(OPTIONS, ANY_TEXTS, PLACES, st.lists(st.integers(0, 100), min_size=15, max_size=15))
def test_nothing_waits_longer_than_the_delay(
    options: SegmentOptions, text: str, places: list[int], waits: list[int]
) -> None:
    """A caller that ticks when due; every code point is out at most `max_delay_ms` after its feed."""
    segmenter = Segmenter(options)
    now, out, fed = 0.0, 0, 0
    arrivals: list[float] = []

    def count(segments: list[Segment], at: float) -> None:
        nonlocal out
        for segment in segments:
            late = [at - arrived for arrived in arrivals[out : out + len(segment.text)]]
            assert max(late) <= options.max_delay_ms
            out += len(segment.text)

    for feed, wait in zip(cut_text(text, places), waits, strict=False):
        while (due := segmenter.due_ms()) is not None and due <= now + wait:
            assert (due >= now) or segmenter.held_bytes
            now_at_tick = max(now, due)
            count(segmenter.tick(now_at_tick), now_at_tick)
            assert (segmenter.due_ms() or now_at_tick + 1) > now_at_tick
        now += wait
        arrivals += [now] * len(feed)
        fed += len(feed)
        count(segmenter.feed(feed, now), now)

        assert (segmenter.due_ms() is None) == (segmenter.held_bytes == 0)
    while (due := segmenter.due_ms()) is not None:
        count(segmenter.tick(max(now, due)), max(now, due))

    assert out == fed
