"""The chart as Helm renders it. Skipped where there is no Helm: `python tools/helm.py install` brings it."""

import functools
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.chart.values_file import CHART
from tools.helm import found

HELMS = found()
Object = dict[str, Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if HELMS:
        return
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents and item.get_closest_marker("no_helm") is None:
            item.add_marker(pytest.mark.skip(reason="no Helm: `python tools/helm.py install`"))


class Refused(Exception):
    """Helm rendered nothing; the text is what its user reads."""


class Rendered:
    """The objects of one rendering."""

    def __init__(self, text: str) -> None:
        self.objects: list[Object] = [document for document in yaml.safe_load_all(text) if document]

    def all(self, kind: str) -> list[Object]:
        return [found for found in self.objects if found["kind"] == kind]

    def one(self, kind: str, name: str | None = None) -> Object:
        matching = [found for found in self.all(kind) if name is None or found["metadata"]["name"] == name]
        assert len(matching) == 1, f"{kind} {name}: {len(matching)}"
        return matching[0]

    @property
    def pod(self) -> Object:
        return self.one("Deployment")["spec"]["template"]["spec"]

    @property
    def gateway(self) -> Object:
        return next(found for found in self.pod["containers"] if found["name"] == "gateway")

    @property
    def config(self) -> Object:
        maps = [found for found in self.all("ConfigMap") if found["metadata"]["name"].endswith("-config")]
        return yaml.safe_load(maps[0]["data"]["config.yaml"])


def render(
    values: Object | None = None,
    *,
    name: str = "relay",
    namespace: str = "default",
    kube: str = "1.34",
    major: str | None = None,
) -> Rendered:
    """Raises Refused. The same question is asked of Helm once."""
    return _render(json.dumps(values or {}, sort_keys=True), name, namespace, kube, major or min(HELMS))


@functools.cache
def _render(values: str, name: str, namespace: str, kube: str, major: str) -> Rendered:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(values)
        file.flush()
        options = ["--namespace", namespace, "--kube-version", kube, "--values", file.name]
        command = [HELMS[major], "template", name, CHART, *options]
        told = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    if told.returncode:
        raise Refused(told.stderr)
    return Rendered(told.stdout)


def tree(dotted: str, value: Any) -> Object:
    """`tree("a.b", 1)` is `{"a": {"b": 1}}`."""
    for key in reversed(dotted.split(".")):
        value = {key: value}
    return value
