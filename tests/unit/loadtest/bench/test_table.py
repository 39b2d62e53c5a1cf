"""What the table says of a run."""

import pytest

from loadtest.bench.table import FIGURES, ORDINARY_FLOORS, reason_against_reference, show


def reference(floors: float) -> dict[str, float]:
    return {"ordinary_cpu_us_per_delivered": 7 * floors, "floor_cpu_us_per_delivered": 7.0}


@pytest.mark.parametrize("floors", ORDINARY_FLOORS)
def test_a_reference_at_either_end_of_its_range_is_a_yardstick(floors: float) -> None:
    assert not reason_against_reference(reference(floors))


@pytest.mark.parametrize("floors", [ORDINARY_FLOORS[0] - 0.01, ORDINARY_FLOORS[1] + 0.01])
def test_a_reference_out_of_its_range_is_none(floors: float) -> None:
    assert "floors" in reason_against_reference(reference(floors))


def test_an_invalid_figure_shows_its_reason_and_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    show({"p99_ms": 123.0}, {"p99_ms": "the load generator was late"})

    shown = capsys.readouterr().out
    assert "INVALID RUN: the load generator was late" in shown
    assert "123" not in shown


@pytest.mark.parametrize(("over", "is_met"), [(0.0, True), (0.01, False)])
def test_a_budget_is_met_up_to_its_value(over: float, is_met: bool) -> None:
    budgets = {figure.name: figure.budget for figure in FIGURES if figure.budget is not None}

    assert show(budgets | {"p99_ms": budgets["p99_ms"] + over}, {}) is is_met
