"""Pieces of escaped text: whatever their end cuts, what is whole is read, and nothing is lost between two of them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.adapters.redis_store import run_texts
from gateway.adapters.redis_store.run_texts import Life, Places, border, unescape, whole_part
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.frames import encode_json

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"\n\x01\x1f\\u0é😀'), max_size=40)
LIFE = Life(Line(b"e.f"), 1)


def escaped(text: str) -> bytes:
    return encode_json(text)[1:-1]


@given(TEXTS, st.data())
@example("\\\\\\n\x01", None)
def test_pieces_of_any_size_give_the_text(text: str, data: st.DataObject | None) -> None:
    stored, read, place = escaped(text), b"", 0
    while place < len(stored):
        size = 12 if data is None else data.draw(st.integers(12, 30))
        piece = whole_part(stored[place : place + size])
        assert piece
        read += unescape(piece)
        place += len(piece)

    assert read == text.encode()


@given(TEXTS, st.integers(0, 60))
def test_only_what_is_not_whole_is_left_out(text: str, size: int) -> None:
    stored = escaped(text)[:size]

    piece = whole_part(stored)

    assert stored.startswith(piece)
    assert len(stored) - len(piece) < 6
    assert text.encode().startswith(unescape(piece))


@pytest.mark.parametrize(("offset", "expected"), list(enumerate([0, 1, 1, 3, 3, 3, 3, 7, 7])))
def test_a_border_is_at_or_before_its_offset(offset: int, expected: int) -> None:
    assert border("aé😀".encode(), offset) == expected


def test_the_longest_unused_place_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_texts, "PLACES_MAX", 2)
    places = Places()
    places.note(b"a", 1, LIFE, 1)
    places.note(b"b", 1, LIFE, 2)
    places.find(b"a", 1)

    places.note(b"c", 1, LIFE, 3)

    assert places.find(b"a", 1) == (LIFE, 1)
    assert places.find(b"b", 1) is None
    assert places.find(b"c", 1) == (LIFE, 3)
