"""Mode `sentence`: failure catalogue L02, L03."""

import pytest

from tests.unit.domain.streams.segment.texts import texts_of


def sentences(*feeds: str, **options: object) -> list[str]:
    """The same when it comes by code points."""
    texts = texts_of("sentence", *feeds, **options)
    assert texts_of("sentence", *"".join(feeds), **options) == texts
    return texts


def test_dots_that_end_nothing() -> None:
    """Failure catalogue L03."""
    feeds = ("Pi is 3.", "14. IP 192.168.1.", "1 ok. Dr. Li said e.g. this. Costs 22,1 EUR.")

    assert sentences(*feeds) == ["Pi is 3.14. ", "IP 192.168.1.1 ok. ", "Dr. Li said e.g. this. ", "Costs 22,1 EUR."]


def test_chinese_sentences_need_no_white_space() -> None:
    """Failure catalogue L02."""
    assert sentences("你好。世界！再见") == ["你好。", "世界！", "再见"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("他说：「走吧。」然后走了", ["他说：「走吧。」", "然后走了"]),
        ("真的吗？！“是的。”好", ["真的吗？！", "“是的。”", "好"]),
        ("完了．次へ", ["完了．", "次へ"]),
        ("円周率は３．１４。次", ["円周率は３．１４。", "次"]),
        ("كيف حالك؟ بخير", ["كيف حالك؟ ", "بخير"]),
        ("यह है।वह है॥ अंत", ["यह है।", "वह है॥ ", "अंत"]),
        ("发布了!太好了.再见", ["发布了!", "太好了.", "再见"]),
        ("！\ufe0f下", ["！\ufe0f", "下"]),
    ],
)
def test_marks_of_other_scripts(text: str, expected: list[str]) -> None:
    """Failure catalogue L02."""
    assert sentences(text) == expected


def test_a_text_without_marks_is_cut_at_the_limit() -> None:
    """Failure catalogue L02: 400 characters of three bytes, 1,024 of which may be held."""
    assert [len(text) for text in sentences("字" * 400)] == [341, 59]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"Stop!" he said. (Yes.) Then', ['"Stop!" he said. ', "(Yes.) ", "Then"]),
        ("**Done.** Next", ["**Done.** ", "Next"]),
        ("Er sagte: „Halt.“ Dann", ["Er sagte: „Halt.“ ", "Dann"]),
        ("Il dit : « Non. » Puis", ["Il dit : « Non. ", "» Puis"]),
    ],
)
def test_closing_marks_stay_with_their_sentence(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Wait... What",
        "Well… Then",
        "Hm. . . Then",
        "太好了……真的",
        "See https://a.example/b?c=d.e#f!g now",
        "J. R. Writer",
        "The U.S. Army",
        "1. First",
        "Fig. 3",
        "No. 5",
        "approx. Five",
        "version 2.0.1-rc.1 is",
        "a sentence etc. and so on",
        "One. \u0301A",
        "好。\u0301下",
    ],
)
def test_no_sentence_ends_here(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I said no. Then", ["I said no. ", "Then"]),
        ("So do I. Then", ["So do I. ", "Then"]),
        ("In 2024. Then", ["In 2024. ", "Then"]),
        ("Really...? Yes", ["Really...? ", "Yes"]),
        ("Ask the Dr . Then", ["Ask the Dr . ", "Then"]),
        ("Stop!!! Go", ["Stop!!! ", "Go"]),
    ],
)
def test_a_sentence_ends_here(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_lines_end_sentences_and_empty_lines_go_with_the_next() -> None:
    text = "One\nTwo\r\n\r\n\nThree\rFour\u2028Five... \nsix"

    assert sentences(text) == ["One\n", "Two\r\n", "\r\n\nThree\r", "Four\u2028", "Five... \n", "six"]


def test_a_line_end_waits_for_nothing() -> None:
    assert sentences("One\n") == ["One\n"]


@pytest.mark.parametrize("character", "\v\f\x1c\x1d\x1e")
def test_control_characters_end_nothing(character: str) -> None:
    """Failure catalogue S06."""
    assert sentences(f"a{character}b") == [f"a{character}b"]


def test_a_long_sentence_is_cut_after_a_word() -> None:
    assert sentences("seven words of text", max_bytes=16) == ["seven words of ", "text"]
