"""`helm upgrade --reuse-values` from the previous release: its defaults stand in the place of ours; new ones lack."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.chart.conftest import HELMS, Rendered, render
from tests.chart.value_sets import SETS
from tools.chart.values_file import CHART

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "deploy" / "previous_release.json"


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This chart as Helm renders it then."""
    commit = json.loads(RECORD.read_text(encoding="utf-8"))["commit"]
    file = f"{commit}:{Path(CHART).resolve().relative_to(ROOT)}/values.yaml"
    told = subprocess.run(["git", "show", file], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False)
    if told.returncode:
        pytest.skip(f"this clone has not got the previous release: {told.stderr.strip()}")
    copy = tmp_path_factory.mktemp("reused") / "relayrouter"
    shutil.copytree(CHART, copy)
    (copy / "values.yaml").write_text(told.stdout, encoding="utf-8")
    return copy


def rendered(chart: Path, values: dict[str, Any], folder: Path) -> Rendered:
    file = folder / "values.yaml"
    file.write_text(json.dumps(values), encoding="utf-8")
    command = [HELMS[min(HELMS)], "template", "relay", chart, "--kube-version", "1.34", "--values", file]
    told = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert 0 == told.returncode, told.stderr
    return Rendered(told.stdout)


SECTIONS: dict[str, dict[str, Any]] = {
    "tls": {"tls": {"existingSecret": "cert"}},
    "envoy": {
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}], "envoyGateway": {"enabled": True}},
    },
}
"""With nothing but the switch: what else is new in them is absent."""


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_that_is_turned_on_means_the_same(chart: Path, tmp_path: Path, name: str) -> None:
    values = SECTIONS[name]
    reused, fresh = (
        [found for found in one.objects if found["kind"] != "Secret"]  # made anew at each rendering
        for one in (rendered(chart, values, tmp_path), render(values))
    )
    assert reused == fresh


@pytest.mark.parametrize("name", SETS)
def test_values_of_the_previous_release_render(chart: Path, tmp_path: Path, name: str) -> None:
    """Also where some of a new section are given: the others of it have no default then."""
    assert rendered(chart, SETS[name], tmp_path).one("Deployment")


def test_defaults_of_the_previous_release_are_the_same_pods(chart: Path, tmp_path: Path) -> None:
    """A value that is absent means what its default means: only what a release changed on purpose may differ."""
    reused, fresh = rendered(chart, {}, tmp_path), render()
    assert reused.config == fresh.config
    assert reused.pod == fresh.pod
