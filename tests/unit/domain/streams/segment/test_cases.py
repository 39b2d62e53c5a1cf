"""What the JavaScript SDK is held against is what this segmenter does."""

from tests.unit.domain.streams.segment.cases import COUNT, FILE, SEED, cases
from tools import grapheme_table


def test_the_random_cases_of_the_sdk_are_those_of_this_segmenter() -> None:
    assert FILE.read_text("utf-8") == cases(SEED, COUNT)


def test_the_sdk_cuts_on_the_graphemes_of_this_segmenter() -> None:
    assert grapheme_table.TABLE.read_text("utf-8") == grapheme_table.table()
