"""Limits, time, and what is carried to another gateway."""

import msgspec
import pytest

from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions
from gateway.domain.streams.segment.segmenter import MAX_RAW_BYTES
from tests.unit.domain.streams.segment.texts import texts_of

FAMILY = "👨‍👩‍👧‍👦"


def texts(segments: list[Segment]) -> list[str]:
    return [segment.text for segment in segments]


def test_the_first_text_of_a_run_is_due_at_once() -> None:
    segmenter = Segmenter(SegmentOptions())
    fed = segmenter.feed("Hel", 1_000)

    assert (fed, segmenter.due_ms()) == ([], 1_000)
    assert texts(segmenter.tick(1_000)) == ["Hel"]
    assert segmenter.due_ms() is None


def test_later_text_is_due_after_the_delay() -> None:
    segmenter = Segmenter(SegmentOptions(max_delay_ms=60))
    segmenter.feed("Hel", 0)
    segmenter.tick(0)
    segmenter.feed("lo", 10)
    segmenter.feed(" you", 50)

    assert segmenter.due_ms() == 70
    assert segmenter.tick(69) == []
    assert texts(segmenter.tick(70)) == ["lo you"]


def test_what_is_left_of_the_first_feed_is_not_due_at_once() -> None:
    segmenter = Segmenter(SegmentOptions(mode=SegmentMode.SENTENCE))

    assert texts(segmenter.feed("One. Two", 5)) == ["One. "]
    assert segmenter.due_ms() == 65


def test_without_first_immediately_the_first_text_waits_like_any_other() -> None:
    segmenter = Segmenter(SegmentOptions(first_immediately=False))
    segmenter.feed("Hel", 5)

    assert segmenter.due_ms() == 65


@pytest.mark.parametrize("growing", ["👨", "👨\u200d", "🇳", "क्", "\u1112", "\r"])
def test_a_grapheme_that_still_grows_is_not_cut_by_an_older_ones_delay(growing: str) -> None:
    segmenter = Segmenter(SegmentOptions())
    segmenter.feed("old ", 0)
    segmenter.tick(0)
    segmenter.feed("text", 10)
    segmenter.feed(growing, 50)

    assert texts(segmenter.tick(70)) == ["text"]
    assert segmenter.due_ms() == 110
    assert texts(segmenter.tick(110)) == [growing]


def test_an_old_grapheme_is_cut_by_the_delay_although_it_grows() -> None:
    segmenter = Segmenter(SegmentOptions(first_immediately=False))
    segmenter.feed("👨", 0)
    segmenter.feed("\u200d", 50)

    assert texts(segmenter.tick(60)) == ["👨\u200d"]


def test_flush_lets_go_of_everything_and_the_text_goes_on() -> None:
    segmenter = Segmenter(SegmentOptions())
    segmenter.feed("Hel", 0)

    assert texts(segmenter.flush()) == ["Hel"]
    assert (segmenter.flush(), segmenter.due_ms(), segmenter.held_bytes) == ([], None, 0)
    segmenter.feed("lo", 0)
    assert texts(segmenter.flush()) == ["lo"]


@pytest.mark.parametrize(("length", "segments"), [(1_023, []), (1_024, []), (1_025, ["a" * 1_024])])
def test_no_more_is_held_than_allowed(length: int, segments: list[str]) -> None:
    segmenter = Segmenter(SegmentOptions(tokens=1_000))
    text = "a" * length

    assert texts(segmenter.feed(text, 0)) == segments
    assert segmenter.held_bytes == length - sum(map(len, segments))


@pytest.mark.parametrize(
    "grapheme", [FAMILY, "🇳🇱", "👋🏽", "e\u0301", "क्षि", "\u1112\u1161\u11ab", "\r\n", "\u0600a", "\u1112\u1161"]
)
@pytest.mark.parametrize("mode", ["tokens", "sentence", "structure"])
def test_a_full_segment_ends_between_graphemes(mode: str, grapheme: str) -> None:
    """Failure catalogue L01: fed by code points, for every place of the limit."""
    for before in range(48):
        text = "x" * before + grapheme * 3

        cut = texts_of(mode, *text, max_bytes=48, tokens=1_000)

        places = {sum(map(len, cut[: count + 1])) for count in range(len(cut))}
        assert places <= {*range(before + 1), *(before + len(grapheme) * count for count in (1, 2, 3))}


def test_a_grapheme_above_the_limit_is_cut_between_code_points() -> None:
    assert texts_of("tokens", FAMILY, max_bytes=16) == ["👨\u200d👩\u200d", "👧\u200d👦"]


def test_raw_text_is_not_held() -> None:
    segmenter = Segmenter(SegmentOptions(mode=SegmentMode.RAW))

    assert texts(segmenter.feed("a", 0)) == ["a"]
    assert (segmenter.feed("", 0), segmenter.flush(), segmenter.tick(100), segmenter.due_ms()) == ([], [], [], None)


def test_raw_text_that_fits_no_message_is_cut() -> None:
    cut = texts_of("raw", FAMILY * 1_000)

    assert "".join(cut) == FAMILY * 1_000
    assert all(len(text.encode()) <= MAX_RAW_BYTES and not len(text) % len(FAMILY) for text in cut)


def test_after_a_restore_the_caller_is_to_tick_and_the_old_time_counts() -> None:
    first = Segmenter(SegmentOptions(first_immediately=False))
    first.feed("Hel", 1_000)
    second = Segmenter(SegmentOptions(first_immediately=False), first.save())

    assert second.due_ms() == 0
    assert second.tick(1_030) == []
    assert second.due_ms() == 1_060
    assert texts(second.tick(1_060)) == ["Hel"]


def test_after_a_restore_under_another_clock_nothing_waits_longer() -> None:
    first = Segmenter(SegmentOptions(first_immediately=False))
    first.feed("Hel", 1_000_000)
    second = Segmenter(SegmentOptions(first_immediately=False), first.save())

    assert second.feed("lo", 5) == []
    assert second.due_ms() == 65


def test_after_a_restore_the_first_text_is_not_due_at_once_again() -> None:
    options = SegmentOptions()
    first = Segmenter(options)
    first.feed("Hel", 0)
    first.tick(0)
    second = Segmenter(options, first.save())
    second.feed("lo", 10)

    assert second.due_ms() == 70


@pytest.mark.parametrize("mode", [mode for mode in SegmentMode if mode is not SegmentMode.PATTERN])
@pytest.mark.parametrize("filler", ["\x00", "{", "`", "字", "🇳"])
def test_the_largest_state_fits_two_kib(mode: SegmentMode, filler: str) -> None:
    options = SegmentOptions(mode=mode)
    segmenter = Segmenter(options)
    segmenter.feed("```" + "l" * 40 + "\n" + filler * 100_000, 0)

    assert len(segmenter.save()) <= 2_048


@pytest.mark.parametrize("state", [b"", b"\x00", b"\x96\x01", b"\xc1", b"x" * 100])
def test_a_state_that_cannot_be_read_is_refused(state: bytes) -> None:
    with pytest.raises(ValueError, match="state cannot be read"):
        Segmenter(SegmentOptions(), state)


def test_a_state_of_another_version_is_refused() -> None:
    fields = msgspec.msgpack.decode(Segmenter(SegmentOptions()).save())

    with pytest.raises(ValueError, match="version 2"):
        Segmenter(SegmentOptions(), msgspec.msgpack.encode([2, *fields[1:]]))


def test_a_state_of_other_options_is_refused() -> None:
    full = Segmenter(SegmentOptions())
    full.feed("a" * 100, 0)

    for options in (SegmentOptions(mode=SegmentMode.SENTENCE), SegmentOptions(max_bytes=99)):
        with pytest.raises(ValueError, match="state cannot be read"):
            Segmenter(options, full.save())


def test_every_cut_or_changed_state_is_read_or_refused() -> None:
    """Never another error, and never a text that was not held."""
    segmenter = Segmenter(SegmentOptions(mode=SegmentMode.STRUCTURE))
    segmenter.feed("Text.\n```py\nabc", 0)
    state = segmenter.save()
    for place in range(len(state)):
        for changed in (state[:place], state[:place] + b"\xff" + state[place + 1 :], state + b"\x00"):
            try:
                Segmenter(SegmentOptions(mode=SegmentMode.STRUCTURE), changed)
            except ValueError:
                continue
