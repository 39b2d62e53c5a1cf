"""Mode `tokens`: so many word-like tokens, counted by the text alone."""

import pytest

from tests.unit.domain.streams.segment.texts import texts_of


def tokens(*feeds: str, count: int = 1) -> list[str]:
    return texts_of("tokens", *feeds, tokens=count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, world", ["Hello", ",", " world"]),
        ("x = 3.14\n\nnext", ["x", " =", " 3", ".", "14", "\n\nnext"]),
        ("你好 world", ["你", "好", " world"]),
        ("ひらカナ한글", ["ひ", "ら", "カ", "ナ", "한글"]),
        ("a" * 33, ["a" * 16, "a" * 16, "a"]),
        ("-" * 17, ["-" * 16, "-"]),
        (" " * 17 + "a", [" " * 16, " a"]),
        ("e\u0301te\u0301 क्षि", ["e\u0301te\u0301", " क्षि"]),
        ("👨‍👩‍👧‍👦🇳🇱 ok", ["👨‍👩‍👧‍👦🇳🇱", " ok"]),
        ("a\r\nb", ["a", "\r\nb"]),
    ],
)
def test_what_a_token_is(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(("words", "segments"), [(14, 1), (15, 1), (16, 2), (30, 2), (31, 3)])
def test_fifteen_tokens_make_a_segment(words: int, segments: int) -> None:
    assert len(texts_of("tokens", " word" * words)) == segments


def test_a_segment_is_out_as_soon_as_its_last_token_is_over() -> None:
    assert tokens("one two three", " ", count=3) == ["one two three", " "]
