"""Names of releases and namespaces that Helm takes, and Kubernetes or YAML read in another way."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.conftest import render

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
RELEASES = ["on", "12", "r.x.y", "r" * 48 + "--b", "r" * 49 + "-b", "r" * 53]
ALL_ON: dict[str, Any] = {
    "networkPolicy": {"enabled": True},
    "autoscaling": {"enabled": True},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
    "metrics": {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
    "routeTable": {"data": {"routes": {}}},
}


def _labels(found: Any) -> Iterator[object]:
    if isinstance(found, dict):
        yield from (value for key, value in found.items() if str(key).startswith("app.kubernetes.io/"))
        for value in found.values():
            yield from _labels(value)
    elif isinstance(found, list):
        for value in found:
            yield from _labels(value)


@pytest.mark.parametrize("release", RELEASES)
def test_every_release_has_names_that_kubernetes_takes(release: str) -> None:
    """Also with dots, dashes where the name is cut, and a name that YAML reads as a number or a truth."""
    objects = render(ALL_ON, name=release).objects
    assert [found["metadata"]["name"] for found in objects if not LABEL.fullmatch(found["metadata"]["name"])] == []
    assert [label for label in _labels(objects) if not isinstance(label, str)] == []


@pytest.mark.parametrize("namespace", ["123", "on"])
def test_a_namespace_is_text(namespace: str) -> None:
    """Namespaces may be all digits."""
    objects = render(ALL_ON, namespace=namespace).objects
    assert {found["metadata"]["namespace"] for found in objects} == {namespace}
