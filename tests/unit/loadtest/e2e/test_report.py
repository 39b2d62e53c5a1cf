"""Rows, their table and the exit status of a run."""

import pytest

from loadtest.e2e.report import COLUMNS, Row, exit_code, table

PASSED = Row("a", is_passed=True)
FAILED = Row("b", note="2 lost")
UNTRIED = Row("c", note="no commit", is_tried=False)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([PASSED], 0),
        ([PASSED, FAILED], 1),
        ([PASSED, UNTRIED], 3),
        ([FAILED, UNTRIED], 1),
        ([], 3),
    ],
)
def test_exit_status_tells_failed_from_not_tried(rows: list[Row], code: int) -> None:
    """A failure outweighs what could not be tried."""
    assert code == exit_code(rows)


def test_json_begins_with_the_columns_of_the_report() -> None:
    """The names that readers of build/e2e.json know, then note and verdict."""
    told = Row("roll", 10, 1, 2, 3, 4, 5, 6.04, "seen", is_passed=True).as_dict()

    assert [*COLUMNS, "note", "passed"] == list(told)
    assert ["roll", 10, 1, 2, 3, 4, 5, 6.0, "seen", True] == list(told.values())


def test_table_shows_every_row_and_its_verdict() -> None:
    """What did not pass says so."""
    lines = table([PASSED, FAILED, UNTRIED]).splitlines()

    assert 5 == len(lines)
    assert "**" not in lines[2]
    assert "**failed**: 2 lost" in lines[3]
    assert "**not tried**: no commit" in lines[4]


def test_note_cannot_break_the_table() -> None:
    """Lines and bars of an error stay in their cell."""
    line = table([Row("a", note="one\ntwo | three")]).splitlines()[2]

    assert line.endswith("one two \\| three |")
