"""Settings of the segmenter: the defaults are the segmenter's own, and what it refuses is refused at the start."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.settings import Settings


def load(**fields: Any) -> Settings:
    return Settings.model_validate({"segments": fields})


def test_the_defaults_are_those_of_the_segmenter() -> None:
    assert load().segments.options() == SegmentOptions()


def test_every_option_can_be_set() -> None:
    segments = load(
        mode="pattern", tokens="3", max_delay_ms="20", max_bytes="64 B", first_immediately="false", pattern="\\n"
    ).segments

    assert segments.options() == SegmentOptions(SegmentMode.PATTERN, 3, 20, 64, False, "\\n")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mode": "words"}, "'tokens', 'sentence', 'structure', 'pattern' or 'raw'"),
        ({"mode": "pattern"}, "give a pattern in mode `pattern`"),
        ({"mode": "pattern", "pattern": "("}, "not a regular expression"),
        ({"tokens": 0}, "greater than or equal to 1"),
        ({"max_bytes": 1_025}, "less than or equal to 1024"),
    ],
)
def test_what_the_segmenter_cannot_do_is_refused_at_the_start(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        load(**fields)
