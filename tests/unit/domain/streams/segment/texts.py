"""Texts that are hard to cut, and ways to feed them; shared by the tests of the segmenter."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import strategies as st

from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions

SHARDS = [
    *(
        "a",
        "Hello",
        " world",
        "Dr",
        "e.g",
        "3",
        "14",
        "I",
        "x" * 17,
        " ",
        "   ",
        "\t",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        " \n",
    ),
    *(".", "!", "?", "...", "…", ",", '"', "'", ")", "]", "**", "“", "”", "»", "«", ": ", "http://a.b/c?d=e"),
    *("。", "！", "？", "．", "」", "『", "，", "你好", "こんにちは", "안녕", "สวัสดี", "؟", "।", "۔", "！\ufe0f"),
    *(
        "👨‍👩‍👧‍👦",
        "👨",
        "\u200d",
        "👩",
        "🇳",
        "🇱",
        "👋",
        "🏽",
        "e\u0301",
        "\u0301",
        "क",
        "्",
        "षि",
        "\u1112",
        "\u1161",
        "\u11ab",
        "\u0600",
    ),
    *(
        "`",
        "``",
        "```",
        "````",
        "~~~",
        "~",
        "python",
        "```python\n",
        "```\n",
        "~~~\n",
        "   ```",
        "    ```",
        "code = 1\n",
    ),
    *("#", "# ", "## Title\n", "- ", "-", "* ", "1. ", "1)", "  - sub\n", "  more\n", "|", "| a | b |\n", "|---|\n"),
    *(
        "{",
        "}",
        '{"type":"code_block"',
        '{"type": "code_block", "language": "c", "code": "',
        '\\"',
        "\\",
        '"}',
        '{"type',
        '":',
        '"code_block"',
    ),
    *("\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffd", "\U0010ffff", "ſ", "ß"),
]
MARKDOWN = [
    *(
        "```python\n",
        "x = 1\n",
        "```\n",
        "````\n",
        "```",
        "`",
        "~~~\n",
        "- item ",
        "- ",
        "1. ",
        "  ",
        "\n",
        "\n\n",
        "text",
        "text. ",
    ),
    *("| a |\n", "# T\n", '{"type":"code_block","code":"', "a b c", '"}', "}\u0301", "字。"),
]
SHARD_TEXTS = st.lists(st.sampled_from(SHARDS), max_size=40).map("".join)
MARKDOWN_TEXTS = st.lists(st.sampled_from(MARKDOWN), max_size=40).map("".join)
ANY_TEXTS = SHARD_TEXTS | MARKDOWN_TEXTS | st.text(st.characters(codec="utf-8"), max_size=60)

OPTIONS = st.builds(
    SegmentOptions,
    mode=st.sampled_from([mode for mode in SegmentMode if mode is not SegmentMode.PATTERN]),
    tokens=st.sampled_from([1, 2, 3, 15]),
    max_delay_ms=st.sampled_from([0, 1, 60]),
    max_bytes=st.sampled_from([16, 17, 24, 64, 1024]),
    first_immediately=st.booleans(),
) | st.builds(
    SegmentOptions,
    mode=st.just(SegmentMode.PATTERN),
    pattern=st.sampled_from(
        [r"\n", r"[.!?]\s*", r"(?=```)", r"a|\s+", r"(?m)^#.*\n", r"[\s\S]", r"\w+(?!\w)", "\u200d"]
    ),
    max_bytes=st.sampled_from([16, 24, 64, 1024]),
)


def cut_text(text: str, places: Iterable[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]


def run(options: SegmentOptions, feeds: Sequence[str]) -> list[Segment]:
    """Without the clock: the time stands still."""
    segmenter = Segmenter(options)
    return [segment for feed in feeds for segment in segmenter.feed(feed, 0.0)] + segmenter.flush()


def texts_of(mode: str, *feeds: str, **options: object) -> list[str]:
    made = SegmentOptions(mode=SegmentMode(mode), **options)  # type: ignore[arg-type]
    return [segment.text for segment in run(made, feeds)]
