"""Every alert has its page, and a page names what exists."""

import re
from pathlib import Path

import pytest

from tools.dashboards.__main__ import ROOT
from tools.dashboards.alert import PREFIX, RUNBOOKS, Alert
from tools.dashboards.alerts import ALERTS
from tools.dashboards.boards import BOARDS

NAMED = re.compile(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)")
TITLES = {panel.title for board in BOARDS for panel in board.panels}
SECTIONS = {section.title for board in BOARDS for section in board.sections}
NAMES = {board.title.partition(" / ")[2].partition(",")[0] for board in BOARDS}


def anchors_of(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_alert_has_a_page_and_every_page_an_alert() -> None:
    pages = {f"{RUNBOOKS}{path.name}" for path in (ROOT / RUNBOOKS).glob("*")}

    assert pages == {alert.page for alert in ALERTS}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_a_page_says_what_it_means_what_to_look_at_and_what_to_do(alert: Alert) -> None:
    page = (ROOT / alert.page).read_text(encoding="utf-8")

    headings = re.findall(r"^#+ .+$", page, re.MULTILINE)

    assert [f"# {PREFIX}{alert.name}", "## What it means", "## What to look at", "## What to do"] == headings


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_panels_that_a_page_names_exist(alert: Alert) -> None:
    """In the middle of the night nobody wants to look for a panel that was renamed."""
    text = " ".join((ROOT / alert.page).read_text(encoding="utf-8").split())

    assert set(NAMED.findall(text)) <= TITLES | SECTIONS | NAMES


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_what_a_page_links_to_exists(alert: Alert) -> None:
    """The page, and the heading in it."""
    path = ROOT / alert.page
    links = re.findall(r"\]\(([^)#]+)#?([^)]*)\)", path.read_text(encoding="utf-8"))

    missing = [
        (target, anchor)
        for target, anchor in links
        if not (path.parent / target).is_file() or (anchor and anchor not in anchors_of(path.parent / target))
    ]

    assert not missing
