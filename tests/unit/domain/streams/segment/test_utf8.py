"""UTF-8 in any pieces, good or bad."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.domain.streams.segment.utf8 import Utf8Decoder

# Pieces of good and bad UTF-8 alike, so that examples are mostly near the borders of the standard.
SHARDS = st.sampled_from(
    [
        b"a",
        b"\xef\xbf\xbd",
        b"\xf0\x9f\x98\xb8",
        b"\xf0\x9f\x98",
        b"\xf0\x9f",
        b"\xf0",
        b"\xe2\x82",
        b"\xe0\x80",
        b"\xed\xa0\x80",
        b"\xff",
        b"\x80",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xf5",
        b"\xc3\xa9",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xbf",
        b"\xbd",
    ]
)
ANY_BYTES = st.lists(SHARDS, max_size=12).map(b"".join) | st.binary(max_size=24)


def decode(*parts: bytes) -> tuple[str, int]:
    decoder = Utf8Decoder()
    text = "".join([decoder.feed(part) for part in parts])
    return text + decoder.close(), decoder.replaced


def test_a_character_cut_between_chunks_is_whole() -> None:
    """Failure catalogue L01."""
    assert decode(b"\xf0\x9f\x98", b"\xb8") == ("\U0001f638", 0)


def test_an_unfinished_character_is_replaced_at_the_end_and_not_before() -> None:
    """Failure catalogue L01."""
    decoder = Utf8Decoder()

    assert decoder.feed(b"ok \xf0\x9f\x98") == "ok "
    assert (decoder.close(), decoder.replaced) == ("\ufffd", 1)
    assert (decoder.close(), decoder.replaced) == ("", 1)


def test_a_stray_byte_swallows_nothing() -> None:
    """Failure catalogue L01."""
    assert decode(b"a\xffb", b"c") == ("a\ufffdbc", 1)


def test_the_producers_own_replacement_characters_are_not_counted() -> None:
    assert decode(b"\xef\xbf\xbd\xff\xef\xbf", b"\xbd") == ("\ufffd\ufffd\ufffd", 1)


@pytest.mark.parametrize(
    ("data", "replaced"),
    [(b"\xed\xa0\x80", 3), (b"\xe0\x80", 2), (b"\xf0\x9f\x98a", 1), (b"\xc0\xaf", 2), (b"\xf4\x90\x80\x80", 4)],
)
def test_each_maximal_ill_formed_part_is_one_replacement(data: bytes, replaced: int) -> None:
    text, counted = decode(data)

    assert (text.count("\ufffd"), counted) == (replaced, replaced)


@given(ANY_BYTES, st.lists(st.integers(0, 40), max_size=6))
@example(b"\xf0\x9f\xff", [1, 2])
def test_text_and_count_do_not_depend_on_the_cuts(data: bytes, places: list[int]) -> None:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    parts = [data[start:end] for start, end in pairwise(edges)]

    assert decode(*parts) == decode(data)
    assert decode(data)[0] == data.decode("utf-8", "replace")


@given(ANY_BYTES, st.integers(0, 40))
def test_another_decoder_goes_on_with_the_pending_bytes(data: bytes, place: int) -> None:
    place %= len(data) + 1
    first = Utf8Decoder()
    head = first.feed(data[:place])
    second = Utf8Decoder(first.pending, first.replaced)
    text = head + second.feed(data[place:]) + second.close()

    assert len(first.pending) <= 3
    assert (text, second.replaced) == decode(data)


@pytest.mark.parametrize("pending", [b"a", b"\xff", b"\xf0\x9f\x98\xb8", b"\x80", b"\xe0\x80"])
def test_pending_bytes_that_no_decoder_leaves_are_refused(pending: bytes) -> None:
    with pytest.raises(ValueError, match="at most 3 bytes"):
        Utf8Decoder(pending)


def test_bad_bytes_cost_no_more_than_good_ones() -> None:
    decoder = Utf8Decoder()

    assert len(decoder.feed(b"\xff" * 1_000_000)) == decoder.replaced == 1_000_000
