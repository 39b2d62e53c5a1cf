"""The files that are delivered: fresh, and whole in the ways that Grafana does not forgive."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tools.dashboards.__main__ import CHART, stale_files
from tools.dashboards.grafana import COLUMNS, SCHEMA_VERSION
from tools.dashboards.panel import SCOPE

FILES = sorted((CHART / "dashboards").glob("*.json"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    path: Path = request.param
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def charts(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def test_files_are_fresh_and_nothing_else_is_there() -> None:
    """The chart takes every file of these folders."""
    assert not stale_files()


def test_uids_and_titles_differ() -> None:
    """Grafana would overwrite one by the other."""
    loaded = [json.loads(path.read_text(encoding="utf-8")) for path in FILES]

    assert len({one["uid"] for one in loaded}) == len({one["title"] for one in loaded}) == len(FILES)
    assert all(len(one["uid"]) <= 40 for one in loaded)


def test_variables_are_the_same_everywhere(dashboard: dict[str, Any]) -> None:
    """Links between dashboards carry them on."""
    names = [variable["name"] for variable in dashboard["templating"]["list"]]

    assert ["datasource", "namespace", "release", "pod"] == names
    assert dashboard["schemaVersion"] == SCHEMA_VERSION


def test_panels_have_ids_of_their_own_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    cells = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x, y in itertools.product(range(grid["x"], grid["x"] + grid["w"]), range(grid["y"], grid["y"] + grid["h"]))
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < COLUMNS


def test_every_query_is_scoped_by_the_variables(dashboard: dict[str, Any]) -> None:
    """A metric without them would show other releases' figures among one's own."""
    for panel in charts(dashboard):
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert target["expr"].count("relayrouter_") == target["expr"].count(SCOPE), target["expr"]


def test_lines_of_one_panel_have_different_names(dashboard: dict[str, Any]) -> None:
    for panel in charts(dashboard):
        targets = panel["targets"]
        assert len({target["legendFormat"] for target in targets}) == len(targets), panel["title"]
        assert len({target["refId"] for target in targets}) == len(targets), panel["title"]
