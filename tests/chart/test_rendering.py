"""Every set of values renders to objects that Kubernetes takes, and to settings that the gateway takes."""

import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from gateway import __version__
from gateway.adapters.config import load_settings
from tests.chart.conftest import HELMS, Refused, render
from tests.chart.value_sets import SETS
from tools.chart.manifests import FOLDER, plain_manifests
from tools.chart.values_file import CHART, read_values

KUBERNETES = tuple(f"1.{minor}" for minor in range(29, 38))
SAME_SINCE = "1.30"
OF_OTHERS = (
    "monitoring.coreos.com",
    "keda.sh",
    "gateway.networking.k8s.io",
    "gateway.envoyproxy.io",
    "cloud.google.com",
    "traefik.io",
)


@pytest.fixture(params=["3", "4"])
def helm(request: pytest.FixtureRequest) -> str:
    if request.param not in HELMS:
        pytest.skip(f"no Helm {request.param}: `python tools/helm.py install`")
    return str(request.param)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_lint_has_nothing_to_say(helm: str, values: dict, tmp_path: Path) -> None:
    """`helm lint --strict` finds no warning in any set of values, with Helm 3 and with Helm 4."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = [HELMS[helm], "lint", "--strict", CHART, "--values", file]
    told = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_both_helms_render_the_same(values: dict) -> None:
    """Helm 3 and 4 make the same objects, made secrets apart."""
    if len(HELMS) < 2:
        pytest.skip("one Helm only: `python tools/helm.py install`")
    renderings = [
        [found for found in render(values, major=major).objects if found["kind"] != "Secret"] for major in HELMS
    ]
    assert sorted(map(str, renderings[0])) == sorted(map(str, renderings[1]))


@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_the_gateway_takes_its_settings(values: dict, tmp_path: Path) -> None:
    """What the ConfigMap and the environment say together is a configuration that a gateway starts with."""
    rendered = render(values)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(rendered.config))
    environ = {
        entry["name"]: entry.get("value", "x1") for entry in rendered.gateway["env"] if entry["name"] != "RR_CONFIG"
    }
    environ |= {
        name: value
        for name, value in (("RR_REDIS__URL", "redis://x"), ("RR_ADMISSION__MEMORY_LIMIT_BYTES", "9"))
        if name in environ
    }
    load_settings(file, environ)


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", SETS.values(), ids=SETS.keys())
def test_kubernetes_takes_every_object(values: dict, version: str) -> None:
    """No unknown field, no wrong type, in any version that is promised; objects of other projects are left to them."""
    rendered = render(values, kube=min(version, SAME_SINCE))
    own = [found for found in rendered.objects if not found["apiVersion"].startswith(OF_OTHERS)]
    assert own
    for found in own:
        kubernetes_validate.validate(found, version, strict=True)


def test_the_newer_versions_get_the_same() -> None:
    """So one rendering is judged for all of them."""
    newer = [version for version in KUBERNETES if version >= SAME_SINCE]
    texts = [
        str([found for found in render(SETS["scaled"], kube=version).objects if found["kind"] != "Secret"])
        for version in newer
    ]
    assert len(newer) == 8
    assert len(set(texts)) == 1


def test_an_older_kubernetes_is_refused() -> None:
    """It would take the objects, and leave out what it does not know."""
    with pytest.raises(Refused, match="kubeVersion"):
        render(kube="1.28")


@pytest.mark.no_helm
def test_chart_and_gateway_are_one_release() -> None:
    """The image that is named by default is that of this version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_no_two_objects_have_one_name() -> None:
    """In no set of values two objects of one kind share a name."""
    for values in SETS.values():
        names = [(found["kind"], found["metadata"]["name"]) for found in render(values).objects]
        assert len(names) == len(set(names))


def test_plain_manifests_are_the_defaults() -> None:
    """deploy/k8s is what the chart renders now."""
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
    assert present == plain_manifests(HELMS[min(HELMS)]), "run `python -m tools.chart manifests`"


@pytest.mark.no_helm
def test_every_value_is_used() -> None:
    """Each path of values.yaml occurs in a template, spelled out."""
    files = [*CHART.glob("templates/**/*.yaml"), *CHART.glob("templates/**/*.tpl"), *CHART.glob("templates/*.txt")]
    # What an image's partial is given whole, and what a variable names.
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    text = text.replace("$scaled.", ".Values.autoscaling.").replace("(.Values.tls | default dict).", ".Values.tls.")
    for given in (".Values.image", ".Values.valkey.image"):
        assert f'"image" {given} ' in text
        text += "".join(f" {given}.{key} " for key in ("registry", "repository", "tag", "digest"))
    rows = read_values((CHART / "values.yaml").read_text(encoding="utf-8"))
    unused = [row.dotted for row in rows if not _occurs(f".Values.{row.dotted}", text)]
    assert unused == []


def _occurs(path: str, text: str) -> bool:
    return any(not (after[:1].isalnum() or after[:1] == ".") for after in text.split(path)[1:])
