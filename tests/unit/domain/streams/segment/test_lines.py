"""A line's kind is told early, and what is told stays true."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.streams.segment.lines import Kind, closes, kind_of, language_of

BEGINNINGS = [
    "",
    " ",
    "   ",
    "    ",
    "\t",
    "`",
    "``",
    "```",
    "~~~",
    "#",
    "##",
    "#######",
    "-",
    "*",
    "+",
    "1",
    "123456789",
    "0",
]
MIDDLES = ["", "\n", ".", ")", " ", "\t", "\r", "|", "{", '{"type":', '"code_block"', "}", ",", "a", "字", "`", "py"]
LINES = st.tuples(st.sampled_from(BEGINNINGS), st.lists(st.sampled_from(BEGINNINGS + MIDDLES), max_size=5)).map(
    lambda parts: parts[0] + "".join(parts[1]) + "\nnext line"
)


@given(LINES)
def test_a_longer_beginning_never_changes_the_kind(line: str) -> None:
    kinds = [kind_of(line[:length]) for length in range(len(line) + 1)]

    told = [kind for kind in kinds if kind is not Kind.UNDECIDED]
    assert kinds == [Kind.UNDECIDED] * (len(kinds) - len(told)) + told
    assert len(set(told)) == 1


def test_language_is_the_first_word_of_the_line() -> None:
    lines = ["```python", "~~~ c++ {.x}\n", "```\n", "``` \t\n", "```{r}\n", "```a,b\n", "```" + "x" * 50]

    assert [language_of(line) for line in lines] == ["python", "c++", None, None, None, "a", "x" * 40]


def test_a_closing_fence_is_as_long_of_the_same_kind_and_alone() -> None:
    lines = ["```\n", "````", "   ``` \t\r\n", "``\n", "~~~\n", "    ```\n", "```x\n", "x```\n"]

    assert [closes(line, "`", 3) for line in lines] == [True, True, True, False, False, False, False, False]
