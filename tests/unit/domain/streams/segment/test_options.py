"""Options: what is wrong is said, and each limit holds at its edge."""

from typing import Any

import pytest

from gateway.domain.streams.segment import SegmentMode, SegmentOptions


def test_defaults() -> None:
    options = SegmentOptions()

    assert (options.mode, options.tokens, options.max_delay_ms, options.max_bytes) == (
        SegmentMode.TOKENS,
        15,
        60,
        1_024,
    )
    assert options.first_immediately is True


@pytest.mark.parametrize(
    ("name", "low", "high"), [("tokens", 1, 1_000), ("max_delay_ms", 0, 10_000), ("max_bytes", 16, 1_024)]
)
def test_numbers_have_limits(name: str, low: int, high: int) -> None:
    for value in (low, high):
        assert getattr(SegmentOptions(**{name: value}), name) == value  # type: ignore[arg-type]
    for value in (low - 1, high + 1):
        with pytest.raises(ValueError, match=f"{name} is {value}; choose {low} to {high}"):
            SegmentOptions(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "words"}, "none of: tokens, sentence, structure, pattern, raw"),
        ({"mode": "pattern"}, "give a pattern"),
        ({"pattern": "a"}, "in no other mode"),
        ({"mode": "pattern", "pattern": "("}, "not a regular expression: missing \\)"),
        ({"mode": "pattern", "pattern": "x*"}, "matches the empty text"),
        ({"mode": "pattern", "pattern": "(" * 500 + ")" * 500}, "not a regular expression"),
        ({"mode": "pattern", "pattern": "(?u)(?a)a"}, "not a regular expression"),
        ({"mode": "pattern", "pattern": "\ud800"}, "not a regular expression"),
        ({"mode": "pattern", "pattern": "(?R)?"}, "without recursion"),
        ({"mode": "pattern", "pattern": ""}, "matches the empty text"),
        ({"mode": "pattern", "pattern": "x" * 1_001}, "at most 1000"),
    ],
)
def test_what_cannot_work_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SegmentOptions(**fields)
