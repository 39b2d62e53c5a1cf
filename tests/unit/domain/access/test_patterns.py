"""Session patterns: `*` and nothing else is special."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.access.patterns import InvalidPattern, check_patterns, matches


@pytest.mark.parametrize(
    ("pattern", "session", "is_covered"),
    [
        ("chat-42", "chat-42", True),
        ("chat-42", "chat-421", False),
        ("chat-*", "chat-", True),
        ("chat-*", "chat", False),
        ("*", "", True),
        ("*", "anything/at all", True),
        ("a*b*c", "a-b-b-c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("*-end", "the-end-", False),
        ("a?c", "abc", False),
        ("[ab]", "a", False),
        ("user:{7}*", "user:{7}:x", True),
        ("**", "x", True),
    ],
)
def test_a_pattern_covers_what_its_literal_parts_allow(pattern: str, session: str, is_covered: bool) -> None:
    assert matches(pattern, session) is is_covered


@given(pattern=st.text("ab*", max_size=8), session=st.text("ab", max_size=10))
def test_a_pattern_means_the_same_as_its_regular_expression(pattern: str, session: str) -> None:
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))

    assert matches(pattern, session) == (re.fullmatch(expression, session, re.DOTALL) is not None)


def test_many_stars_cost_no_more_than_the_text_is_long() -> None:
    rng = random.Random(1)
    session = "".join(rng.choice("ab") for _ in range(128))

    began = time.process_time()
    for _ in range(100):
        matches("a*" * 60 + "c", session)

    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("count", "is_accepted"), [(63, True), (64, True), (65, False)])
def test_a_token_has_at_most_64_patterns(count: int, is_accepted: bool) -> None:
    if is_accepted:
        assert len(check_patterns(("x",) * count)) == count
    else:
        with pytest.raises(InvalidPattern):
            check_patterns(("x",) * count)


@pytest.mark.parametrize(("size", "is_accepted"), [(0, False), (1, True), (255, True), (256, True), (257, False)])
def test_a_pattern_has_1_to_256_bytes(size: int, is_accepted: bool) -> None:
    if is_accepted:
        check_patterns(("x" * size,))
    else:
        with pytest.raises(InvalidPattern):
            check_patterns(("x" * size,))
