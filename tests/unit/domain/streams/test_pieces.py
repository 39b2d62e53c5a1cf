"""Pieces: mended surrogates, bounded parts, JSON that UTF-8 can carry."""

import json

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.pieces import SurrogateMender, count_replacements, encode_json, split_text

ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=60)
WITH_SURROGATES = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=30)


@given(ANY_TEXT, st.integers(4, 40))
def test_parts_join_to_the_text_and_none_is_above_the_limit(text: str, max_bytes: int) -> None:
    parts = list(split_text(text, max_bytes))

    assert "".join(parts) == text
    assert all(0 < len(part.encode()) <= max_bytes for part in parts)


def test_a_text_of_just_the_limit_stays_whole() -> None:
    assert list(split_text("a" * 100, 100)) == ["a" * 100]
    assert list(split_text("a" * 101, 100)) == ["a" * 100, "a"]
    assert list(split_text("", 100)) == []


@given(st.lists(WITH_SURROGATES, max_size=6))
def test_mended_text_does_not_depend_on_how_it_was_cut(parts: list[str]) -> None:
    mender = SurrogateMender()
    mended = "".join(mender.feed(part) for part in parts) + mender.close()

    whole = "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert mended == whole
    assert mender.replaced == whole.count("\ufffd") - "".join(parts).count("\ufffd")
    mended.encode()


@given(st.lists(st.binary(max_size=3) | st.just("\ufffd".encode()), max_size=12).map(b"".join))
def test_replacements_that_were_sent_as_such_are_not_counted(data: bytes) -> None:
    marked = data.decode("utf-8", "backslashreplace")

    replaced = count_replacements(data, data.decode("utf-8", "replace"))

    assert (replaced == 0) is (marked == data.decode("utf-8", "replace"))


@given(st.dictionaries(WITH_SURROGATES, WITH_SURROGATES, max_size=4))
def test_json_is_utf8_whatever_is_in_it(value: dict[str, str]) -> None:
    decoded = json.loads(encode_json(value))

    assert all(isinstance(text, str) and text.encode() is not None for text in decoded.values())


def test_json_keeps_what_is_no_surrogate() -> None:
    assert encode_json({"text": "é😀\u2028\n"}) == '{"text":"é😀\u2028\\n"}'.encode()
