"""Mode `structure`: failure catalogue L04."""

from typing import Any

import pytest

from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions
from tests.unit.domain.streams.segment.texts import run, texts_of

OPTIONS = SegmentOptions(mode=SegmentMode.STRUCTURE)


def structure(*feeds: str, **options: Any) -> list[Segment]:
    """The same when it comes by code points."""
    made = SegmentOptions(mode=SegmentMode.STRUCTURE, **options)
    segments = run(made, feeds)
    assert run(made, list("".join(feeds))) == segments
    return segments


def slowly(*tokens: str) -> list[Segment]:
    """Each token is ticked out before the next one comes."""
    segmenter = Segmenter(OPTIONS)
    return [
        segment
        for step, token in enumerate(tokens)
        for segment in segmenter.feed(token, step * 100) + segmenter.tick(step * 100 + 60)
    ]


def code(text: str, block: int, language: str | None, part: int, last: bool) -> Segment:
    return Segment(text, True, {"block": block, "language": language, "part": part, "last": last})


def blocks(*feeds: str, **options: Any) -> list[str]:
    return [segment.text for segment in structure(*feeds, **options) if segment.is_code]


def test_a_fence_over_three_chunks_is_one_segment() -> None:
    """Failure catalogue L04."""
    segments = structure("``", "`py\nprint('a. b')\n``", "`\nDone. Next.")

    assert segments == [code("```py\nprint('a. b')\n```\n", 1, "py", 1, True), Segment("Done. "), Segment("Next.")]


@pytest.mark.parametrize(
    "block",
    [
        "````\n```\n````\n",
        "```\n~~~\n```\n",
        "~~~~ ruby startline=3\n```\n~~~\n~~~~~\n",
        "   ```\n    ```\n  ```  \n",
        "```\r\na\r\n```\r\n",
        "```\n\n```\n",
        "`" * 100 + "\n" + "`" * 99 + "\n" + "`" * 100 + "\n",
        "```\n``` no\n```\n",
        '{"type":"code_block","language":"js","code":"let a = {}; // \\"}\\" \\\\"}',
        '{ "type" : "code_block", "content": {"a": {"b": "}"}} }',
        '{\n  "type": "code_block",\n  "code": "x"\n}',
    ],
)
def test_what_a_block_is(block: str) -> None:
    """Failure catalogue L04: length and character of the fence count, and braces in strings do not."""
    assert blocks(f"Text.\n{block}Text.\n") == [block]


@pytest.mark.parametrize(
    "text",
    [
        "Run ``` in mid-line\n",
        "```code``` within a line\n",
        "    ```\nindented by four\n",
        "\t```\nindented by a tab\n",
        '\u0600{"type":"code_block"}\n',
        "{\n}\n",
        "``\ntwo are none\n",
        '{"type":"chart","data":[1]}\n',
        '{"kind":"code_block"}\n',
        '{"a":{"type":"code_blocks"}}\n',
    ],
)
def test_what_is_no_block(text: str) -> None:
    assert blocks(text) == []


def test_an_object_may_stand_within_a_line() -> None:
    segments = structure('See {"type":"code_block","code":"x"}, end. New\n')

    assert segments == [
        Segment("See "),
        code('{"type":"code_block","code":"x"}', 1, None, 1, True),
        Segment(", end. "),
        Segment("New\n"),
    ]


@pytest.mark.parametrize("line", ['{"type":"code_block","code":"x\n', '{"type":"code_block","code":"x\\\n'])
def test_an_object_that_is_no_json_ends_with_its_line(line: str) -> None:
    assert structure(line + "Text. ") == [code(line, 1, None, 1, True), Segment("Text. ")]


def test_an_object_ends_between_graphemes() -> None:
    assert blocks('{"type":"code_block"}\u0301\u0302 Text') == ['{"type":"code_block"}\u0301\u0302']


@pytest.mark.parametrize("rest", ["```\nText\n", "# Text. Text\n", "- Text. Text\n"])
def test_after_an_object_no_line_begins(rest: str) -> None:
    segments = structure('{"type":"code_block"}' + rest)

    assert [segment.is_code for segment in segments] == [True, False, False]


def test_blocks_are_numbered_and_named() -> None:
    segments = structure('~~~\n~~~\n``` Rust,no_run\n```\n{"type":"code_block","lang":"go"}')

    assert [(part.fields["block"], part.fields["language"]) for part in segments] == [(1, None), (2, "Rust"), (3, "go")]


def test_a_long_block_goes_out_in_bounded_parts() -> None:
    """Failure catalogue L04: 100 kB."""
    text = "```python\n" + "print('hello')\n" * 7_000 + "```\n"

    parts = structure(text, "After")[:-1]

    assert "".join(part.text for part in parts) == text
    assert [part.fields["part"] for part in parts] == list(range(1, len(parts) + 1))
    assert {part.fields["block"] for part in parts} == {1}
    assert {part.fields["language"] for part in parts} == {"python"}
    assert [part.fields["last"] for part in parts] == [False] * (len(parts) - 1) + [True]
    assert all(len(part.text) <= 1_024 and part.text.endswith("\n") for part in parts)


def test_the_text_may_end_within_a_block() -> None:
    """Failure catalogue L04: the last part of an open block says that it is not the last."""
    assert structure("```py\nx = 1\n") == [code("```py\nx = 1\n", 1, "py", 1, False)]


def test_a_closing_fence_needs_no_line_end_at_the_end() -> None:
    assert structure("```py\nx = 1\n```") == [code("```py\nx = 1\n```", 1, "py", 1, True)]


def test_a_block_stays_one_over_flushes_ticks_and_gateways() -> None:
    segmenter = Segmenter(OPTIONS)
    parts = segmenter.feed("Text.\n```py\na = 1\n", 0) + segmenter.tick(60)
    parts += segmenter.feed("b = ", 70) + segmenter.tick(130)
    parts += segmenter.feed("2\n``", 140) + segmenter.flush()
    segmenter = Segmenter(OPTIONS, segmenter.save())
    parts += segmenter.feed("`\nText.\n", 150)

    assert parts == [
        Segment("Text.\n"),
        code("```py\na = 1\n", 1, "py", 1, False),
        code("b = ", 1, "py", 2, False),
        code("2\n``", 1, "py", 3, False),
        code("`\n", 1, "py", 4, True),
        Segment("Text.\n"),
    ]


def test_an_opening_line_that_comes_slowly_opens_a_block() -> None:
    parts = slowly("\n``", "`", "py", "thon", "\n", "x", "\n", "```", "\n", "Text")

    assert [(part.text, part.is_code, part.fields.get("language"), part.fields.get("last")) for part in parts] == [
        ("\n``", False, None, None),
        ("`", True, None, False),
        ("py", True, "py", False),
        ("thon", True, "python", False),
        ("\n", True, "python", False),
        ("x", True, "python", False),
        ("\n", True, "python", False),
        ("```", True, "python", False),
        ("\n", True, "python", True),
        ("Text", False, None, None),
    ]


def test_code_within_a_line_that_comes_slowly_swallows_only_that_line() -> None:
    segmenter = Segmenter(OPTIONS)
    parts = segmenter.feed("```x", 0) + segmenter.tick(60) + segmenter.feed("``` is code\nText.\n", 100)

    assert parts == [code("```x", 1, "x", 1, False), code("``` is code\n", 1, "x", 2, True), Segment("Text.\n")]


@pytest.mark.parametrize("before", ["", "\n", "  ", "Look: "])
def test_an_object_that_comes_slowly_is_known_once_its_type_is(before: str) -> None:
    parts = slowly(before or "\n", '{"', "type", '":"code', '_block"', ',"a":{"b":1}', ',"c":"}', '"', "}", "\nText")

    assert "".join(part.text for part in parts if part.is_code) == ',"a":{"b":1},"c":"}"}'
    assert [part.fields["last"] for part in parts if part.is_code] == [False, False, False, True]


def test_an_object_whose_indent_is_out_is_whole() -> None:
    assert [part.text for part in slowly("\n  ", '{"type":"code_block"}', " Text") if part.is_code] == [
        '{"type":"code_block"}'
    ]


@pytest.mark.parametrize("before", ["\n", "See "])
def test_an_object_that_began_in_the_line_before_hides_no_fence(before: str) -> None:
    parts = slowly(before + "{\n", "  ", "```c\n", "```\n")

    assert [part.text for part in parts if part.is_code] == ["```c\n", "```\n"]


def test_what_is_no_object_holds_nothing_up() -> None:
    assert [segment.text for segment in Segmenter(OPTIONS).feed("{\nOne. Two. ", 0)] == ["{\n", "One. "]


def test_an_object_that_did_not_come_is_text() -> None:
    parts = slowly("See ", '{"', "type", '":"chart"', '{"type":"code_block"}')

    assert [part.text for part in parts if part.is_code] == ['{"type":"code_block"}']


def test_headings_items_and_tables_stay_whole() -> None:
    text = (
        "# A. B! C\nText one. Text two.\n\n- Item one. Still it.\n* Item\n  goes. On\n    2) Sub. Item\n"
        "| a. | b |\n|----|---|\n| c. D | |\nEnd.\n"
    )

    assert texts_of("structure", text) == [
        "# A. B! C\n",
        "Text one. ",
        "Text two.\n",
        "\n- Item one. Still it.\n",
        "* Item\n  goes. On\n",
        "    2) Sub. Item\n",
        "| a. | b |\n|----|---|\n| c. D | |\n",
        "End.\n",
    ]


def test_a_long_table_is_cut_between_rows() -> None:
    row = "| cell. One | cell. Two |\n"

    assert set(texts_of("structure", row * 20, max_bytes=64)) == {row * 2}


@pytest.mark.parametrize("text", ["**Bold.** Text", "-5 is. Less", "#tag. Text", "1.5 is. More", "---\nText. Text"])
def test_what_only_looks_like_a_structure_is_sentences(text: str) -> None:
    assert len(texts_of("structure", text)) == 2 + text.count("\n")
