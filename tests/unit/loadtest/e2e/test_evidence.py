"""The page of evidence: its table is replaced, all around it stays."""

import pytest

from loadtest.e2e.evidence import BEGIN, END, PAGE, evidence, with_evidence
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
