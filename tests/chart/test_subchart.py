"""The chart as a part of somebody's own chart."""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.conftest import HELMS, Rendered
from tools.chart.values_file import CHART


@pytest.fixture(params=["3", "4"])
def helm(request: pytest.FixtureRequest) -> str:
    if request.param not in HELMS:
        pytest.skip(f"no Helm {request.param}: `python tools/helm.py install`")
    return str(request.param)


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """A chart that has ours twice: by its name with a condition, and under an alias."""
    folder = tmp_path / "parent"
    (folder / "charts").mkdir(parents=True)
    (folder / "charts" / "relayrouter").symlink_to(CHART)
    ours = {"name": "relayrouter", "version": "0.1.0", "repository": ""}
    chart = {
        "apiVersion": "v2",
        "name": "parent",
        "version": "1.0.0",
        "dependencies": [{**ours, "condition": "relayrouter.enabled"}, {**ours, "alias": "second"}],
    }
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
    values = {
        "relayrouter": {"enabled": True, "replicas": 3},
        "global": {
            "imageRegistry": "mirror.internal",
            "imagePullSecrets": [{"name": "theirs"}, "ours"],
            "somebody": {"else": True},
        },
    }
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    return folder


def _render(helm: str, parent: Path, *more: str) -> Rendered:
    command = [HELMS[helm], "template", "app", parent, *more]
    told = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert told.returncode == 0, told.stderr
    return Rendered(told.stdout)


def test_twice_in_one_release(helm: str, parent: Path) -> None:
    """Under its name and an alias, with values of their own; no object of one is an object of the other."""
    rendered = _render(helm, parent)
    first, second = rendered.one("Deployment", "app-relayrouter"), rendered.one("Deployment", "app-second")
    assert (first["spec"]["replicas"], second["spec"]["replicas"]) == (3, 2)
    assert first["spec"]["selector"] != second["spec"]["selector"]
    names = [(found["kind"], found["metadata"]["name"]) for found in rendered.objects]
    assert len(names) == len(set(names))
    images = {found["spec"]["template"]["spec"]["containers"][0]["image"] for found in (first, second)}
    assert images == {"mirror.internal/relayrouter/relayrouter:0.1.0"}
    pulls = [found["spec"]["template"]["spec"]["imagePullSecrets"] for found in (first, second)]
    assert pulls == [[{"name": "theirs"}, {"name": "ours"}]] * 2


def test_switched_off(helm: str, parent: Path) -> None:
    """`relayrouter.enabled=false` leaves the other one alone."""
    deployments = _render(helm, parent, "--set", "relayrouter.enabled=false").all("Deployment")
    assert [found["metadata"]["name"] for found in deployments] == ["app-second"]
