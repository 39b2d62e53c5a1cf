"""Plain text: characters wait for their rest, what is no UTF-8 is replaced and counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.dialects import DialectName, TextDialect, open_dialect
from gateway.domain.streams.pieces import EndReason, StreamEnd, TextPiece
from tests.unit.domain.streams.dialects.reading import cuts_of, read, read_by_many_hands, text_of

PLACES = st.lists(st.integers(0, 10_000), max_size=10)
ALMOST_UTF8 = st.lists(st.binary(max_size=4) | st.text(max_size=3).map(str.encode), max_size=40).map(b"".join)


def test_a_character_cut_between_two_reads_waits_for_its_rest() -> None:
    dialect = TextDialect()

    assert dialect.feed(b"a\xf0\x9f\x98") == [TextPiece("a")]
    assert dialect.feed(b"\xb8b") == [TextPiece("😸b")]


def test_a_cut_character_at_the_end_is_one_replacement_and_only_then() -> None:
    dialect = TextDialect()

    assert dialect.feed(b"\xf0\x9f\x98") == []
    assert dialect.close() == ([TextPiece("\ufffd")], StreamEnd(EndReason.COMPLETE, replaced=1))


def test_a_stray_byte_does_not_swallow_what_follows() -> None:
    pieces, end = read(TextDialect(), b"a\xffb", b"c")

    assert text_of(pieces) == "a\ufffdbc"
    assert end.replaced == 1


def test_a_replacement_that_was_sent_as_such_is_not_counted() -> None:
    _, end = read(TextDialect(), "a\ufffd".encode() + b"\xff" + "\ufffd".encode())

    assert end.replaced == 1


def test_each_read_is_one_piece() -> None:
    pieces, _ = read(TextDialect(), b"one", b"two")

    assert pieces == [TextPiece("one"), TextPiece("two")]


def test_the_saved_offset_is_the_end_of_the_last_whole_character() -> None:
    dialect = TextDialect()
    dialect.feed(b"a\xff\xf0\x9f\x98")

    offset, state = dialect.save()

    assert offset == 2
    assert read(open_dialect(DialectName.TEXT, state, offset), b"\xf0\x9f\x98\xb8") == (
        [TextPiece("😸")],
        StreamEnd(EndReason.COMPLETE, replaced=1),
    )


@given(ALMOST_UTF8, PLACES)
def test_cuts_never_change_the_text(data: bytes, places: list[int]) -> None:
    whole = read(TextDialect(), data)
    pieces, end = read(TextDialect(), *cuts_of(data, places))

    assert text_of(pieces) == data.decode("utf-8", "replace")
    assert end == whole[1]


@given(ALMOST_UTF8, PLACES)
def test_another_reader_goes_on_with_the_same_text(data: bytes, places: list[int]) -> None:
    pieces, end = read_by_many_hands(DialectName.TEXT, data, places)

    assert text_of(pieces) == data.decode("utf-8", "replace")
    assert end == read(TextDialect(), data)[1]


@pytest.mark.parametrize("state", [b"", b"1 text ", b"1 text -1", b"1 text x", b"2 text 0", b"1 openai 0 {}"])
def test_a_state_that_is_none_is_refused(state: bytes) -> None:
    with pytest.raises(ValueError, match="no state of the dialect text"):
        open_dialect(DialectName.TEXT, state)
