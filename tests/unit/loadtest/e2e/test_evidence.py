"""The page of evidence: its table is replaced, all around it stays."""

import pytest

from loadtest.e2e.evidence import BEGIN, END, PAGE, evidence, with_evidence, with_rows
from loadtest.e2e.report import Row


def test_what_stood_between_the_marks_is_replaced() -> None:
    """And only that."""
    page = f"# Title\n\n{BEGIN}\nold\n{END}\n\nRest.\n"

    assert f"# Title\n\n{BEGIN}\nnew\n{END}\n\nRest.\n" == with_evidence(page, "new\n")


def test_page_without_marks_is_refused() -> None:
    """Rather than to write nothing, or over everything."""
    with pytest.raises(ValueError, match="has no"):
        with_evidence("# Title\n", "new\n")


def test_published_page_has_the_marks() -> None:
    """A full run must be able to write there."""
    assert "fresh" in with_evidence(PAGE.read_text(encoding="utf-8"), "fresh\n")


def test_versions_come_with_the_table() -> None:
    """Figures without them are not evidence."""
    text = evidence([Row("install", is_passed=True)], {"Kubernetes": "1.34.4"})

    assert "- Kubernetes: 1.34.4" in text
    assert "| install |" in text


def test_a_step_by_itself_replaces_its_row_and_says_when_it_ran() -> None:
    """Nothing else of the last full run changes, its date neither."""
    versions = {"date": "2026-11-30 20:00 UTC", "RelayRouter": "0.1.0, commit abc; the previous one: 0.0.9"}
    full = evidence([Row("install", note="well", is_passed=True), Row("power cut", note="late")], {"date": "before"})
    page = with_evidence(f"{BEGIN}\n{END}\nRest.\n", full)

    text = with_rows(page, [Row("power cut", note="in time", is_passed=True), Row("new", is_passed=True)], versions)

    told = "in time (run by itself 2026-11-30 20:00 UTC, 0.1.0, commit abc) |"
    assert [line.rpartition("| ")[0].split(" | ")[0] for line in text.splitlines() if line.startswith("| ")] == [
        "| step", "| ---", "| install", "| power cut", "| new",
    ]  # fmt: skip
    assert told in text
    assert "late" not in text
    assert "- date: before" in text
    assert text.endswith(f"{END}\nRest.\n")
