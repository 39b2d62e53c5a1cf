"""Replicas, disruption budgets, autoscalers (H01, H02, K12, K13)."""

from typing import Any

import pytest

from tests.chart.conftest import render


@pytest.mark.parametrize(
    "values", [{"autoscaling": {"enabled": True}}, {"keda": {"enabled": True, "prometheusAddress": "http://p"}}]
)
def test_replicas_are_left_to_the_autoscaler(values: dict[str, Any]) -> None:
    """No upgrade sets the number back."""
    assert "replicas" not in render(values).one("Deployment")["spec"]


@pytest.mark.parametrize("replicas", [0, 1, 10])
def test_replicas_are_as_given(replicas: int) -> None:
    """Without an autoscaler the number is that of the values, 0 included."""
    assert render({"replicas": replicas}).one("Deployment")["spec"]["replicas"] == replicas


@pytest.mark.parametrize("replicas", [1, 2, 10])
def test_a_node_can_be_drained(replicas: int) -> None:
    """The budget lets one pod go, whatever their number."""
    spec = render({"replicas": replicas}).one("PodDisruptionBudget")["spec"]
    assert spec["maxUnavailable"] == 1
    assert "minAvailable" not in spec


def test_default_autoscaler_needs_no_adapter() -> None:
    """Without targets of clients or runs only CPU is looked at: one metric without data would stop all scaling."""
    metrics = render({"autoscaling": {"enabled": True}}).one("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert [metric["type"] for metric in metrics] == ["ContainerResource"]


def test_the_default_target_is_what_capacity_is_planned_with() -> None:
    """docs/capacity.md: 60 % of the one core that a gateway can use; and never more than it can reach."""
    rendered = render({"autoscaling": {"enabled": True}})
    metric = rendered.one("HorizontalPodAutoscaler")["spec"]["metrics"][0]["containerResource"]
    requested = int(rendered.gateway["resources"]["requests"]["cpu"].removesuffix("m"))
    assert requested * metric["target"]["averageUtilization"] == 600 * 100


def test_clients_and_runs_are_metrics_of_pods() -> None:
    """Where they are asked for, by the names that the gateway exports."""
    values = {"autoscaling": {"enabled": True, "targetConnections": 500, "targetOpenRuns": 20}}
    metrics = render(values).one("HorizontalPodAutoscaler")["spec"]["metrics"]
    told = {
        metric["pods"]["metric"]["name"]: metric["pods"]["target"]["averageValue"]
        for metric in metrics
        if "pods" in metric
    }
    assert told == {"relayrouter_connections": "500", "relayrouter_open_ingests": "20"}


def test_keda_asks_for_the_same_figures() -> None:
    """Each target is a query over the release's pods, in the same bounds; what is not asked for is not looked at."""
    keda = {"enabled": True, "prometheusAddress": "http://p:9090", "targetConnections": 500, "targetOpenRuns": 20}
    spec = render({"keda": keda, "autoscaling": {"maxReplicas": 7}}).one("ScaledObject")["spec"]
    scope = '{namespace="default",app_kubernetes_io_instance="relay"}'
    told = {trigger["metadata"]["query"]: trigger["metadata"]["threshold"] for trigger in spec["triggers"]}
    assert told == {
        f"sum(relayrouter_connections{scope})": "500",
        f"sum(relayrouter_open_ingests{scope})": "20",
    }
    assert {trigger["metricType"] for trigger in spec["triggers"]} == {"AverageValue"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (2, 7)
    assert spec["scaleTargetRef"] == {"name": render().one("Deployment")["metadata"]["name"]}


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_scale_in_is_slow_and_can_be_set(kind: str) -> None:
    """One pod a minute at most, after five quiet minutes; both can be changed."""
    enabled: dict[str, Any] = (
        {"autoscaling": {"enabled": True}}
        if kind.startswith("H")
        else {"keda": {"enabled": True, "prometheusAddress": "http://p"}}
    )
    down = {"stabilizationWindowSeconds": 600, "pods": 2, "periodSeconds": 120}
    changed = {**enabled, "autoscaling": {**enabled.get("autoscaling", {}), "scaleDown": down}}
    spec, other = (_behavior(render(values).one(kind)) for values in (enabled, changed))
    assert spec == {"stabilizationWindowSeconds": 300, "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    assert other == {
        "stabilizationWindowSeconds": 600,
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 120}],
    }


def _behavior(scaler: dict[str, Any]) -> dict[str, Any]:
    spec = scaler["spec"]
    whole = spec["behavior"] if "behavior" in spec else spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    return whole["scaleDown"]


def test_pods_may_be_counted_by_somebody_else() -> None:
    """`replicas: null` leaves the number out, so that no upgrade undoes what another scaler has set."""
    assert "replicas" not in render({"replicas": None}).one("Deployment")["spec"]
    assert render({"replicas": 0}).one("Deployment")["spec"]["replicas"] == 0
