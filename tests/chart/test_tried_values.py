"""What the steps on a real cluster give to Helm is what the chart takes: CI runs two of them only."""

from typing import Any

import pytest

from loadtest.e2e import step_manifests, step_monitoring, step_scaling
from loadtest.e2e.place import FORCED
from loadtest.e2e.site import merged
from tests.chart.conftest import render

TRIED: dict[str, Any] = {
    "clients": step_scaling.values(targetConnections=100),
    "cpu": step_scaling.values(targetCPUPercent=60),
    "monitoring": step_monitoring.VALUES,
    "kept": step_manifests.KEPT,
}


@pytest.mark.parametrize("name", TRIED)
def test_the_chart_takes_them(name: str) -> None:
    assert render(merged(FORCED, TRIED[name])).one("Deployment")


def test_an_autoscaler_looks_at_what_is_tried_alone() -> None:
    """Another target would hide whether this one works."""
    found = {name: render(TRIED[name]).one("HorizontalPodAutoscaler")["spec"]["metrics"] for name in ("clients", "cpu")}

    assert {"clients": ["Pods"], "cpu": ["ContainerResource"]} == {
        name: [metric["type"] for metric in metrics] for name, metrics in found.items()
    }
