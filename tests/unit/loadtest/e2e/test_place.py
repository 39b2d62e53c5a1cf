"""One part of a step that breaks off hides nothing of the others."""

import pytest

from loadtest.e2e.inside import ProcessEnded
from loadtest.e2e.place import tried
from loadtest.e2e.report import Row
from loadtest.e2e.tool import CannotRun, CommandFailed


async def _raising(error: Exception) -> Row:
    raise error


@pytest.mark.parametrize("error", [CommandFailed("why"), ProcessEnded("why"), TimeoutError("why"), OSError("why")])
async def test_part_that_breaks_off_is_a_failed_row(error: Exception) -> None:
    """Its note says what happened."""
    row = await tried("part", _raising(error))

    assert (row.step, row.is_passed, row.is_tried) == ("part", False, True)
    assert "why" in row.note


async def test_part_that_cannot_run_was_not_tried() -> None:
    """The machine's lack is no failure."""
    row = await tried("part", _raising(CannotRun("no such process")))

    assert (row.is_passed, row.is_tried, row.note) == (False, False, "no such process")


async def test_defect_of_the_harness_is_not_taken_for_a_result() -> None:
    """It ends the run."""
    with pytest.raises(KeyError):
        await tried("part", _raising(KeyError("x")))
