"""Services, monitors, network policies and exposure (H04, K10)."""

import json
from typing import Any

import pytest
import yaml

from tests.chart.conftest import Rendered, render, tree
from tests.chart.value_sets import SETS
from tools.chart.values_file import CHART

NAMES: list[tuple[str, dict[str, Any]]] = [
    ("relayrouter", {}),
    ("x", {}),
    ("x", {"nameOverride": "gate"}),
    ("x", {"fullnameOverride": "the-gateways"}),
    ("r" * 53, {"nameOverride": "n" * 60}),
]


def _selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def _admin_port(rendered: Rendered) -> int:
    return next(port["containerPort"] for port in rendered.gateway["ports"] if port["name"] == "admin")


@pytest.mark.parametrize(("release", "names"), NAMES, ids=str)
def test_a_service_monitor_finds_one_service(release: str, names: dict[str, Any]) -> None:
    """Its selector fits exactly one Service, whose port of that name leads to the admin port of the gateways."""
    rendered = render(
        {**names, **tree("metrics.serviceMonitor", {"enabled": True, "labels": {"release": "stack"}})}, name=release
    )
    monitor = rendered.one("ServiceMonitor")
    services = [
        found
        for found in rendered.all("Service")
        if _selects(monitor["spec"]["selector"]["matchLabels"], found["metadata"]["labels"])
    ]
    assert len(services) == 1
    port = next(
        port for port in services[0]["spec"]["ports"] if port["name"] == monitor["spec"]["endpoints"][0]["port"]
    )
    assert (port["targetPort"], _admin_port(rendered)) == ("admin", 9090)
    assert monitor["metadata"]["labels"]["release"] == "stack"


@pytest.mark.parametrize(("release", "names"), NAMES, ids=str)
def test_selectors_find_the_gateways_only(release: str, names: dict[str, Any]) -> None:
    """Services, budget and PodMonitor select the Deployment's pods and not Valkey's; no name is longer than allowed."""
    rendered = render({**names, **tree("metrics.podMonitor.enabled", True)}, name=release)
    pods = rendered.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    valkey = rendered.one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        found["spec"]["selector"]
        for found in rendered.all("Service")
        if not found["metadata"]["name"].endswith("-valkey")
    ]
    selectors += [
        rendered.one(kind)["spec"]["selector"]["matchLabels"]
        for kind in ("PodMonitor", "PodDisruptionBudget", "Deployment")
    ]
    for selector in selectors:
        assert _selects(selector, pods)
        assert not _selects(selector, valkey)
    assert all(len(found["metadata"]["name"]) <= 63 for found in rendered.objects)


def test_the_public_service_leads_to_no_metrics() -> None:
    """Public and admin ports are on Services of their own."""
    rendered = render()
    assert [port["targetPort"] for port in rendered.one("Service", "relay-relayrouter")["spec"]["ports"]] == ["http"]
    assert [port["targetPort"] for port in rendered.one("Service", "relay-relayrouter-admin")["spec"]["ports"]] == [
        "admin"
    ]
    assert rendered.one("Service", "relay-relayrouter-headless")["spec"]["clusterIP"] == "None"


def test_pods_bring_the_labels_that_dashboards_ask_for() -> None:
    """Series get the application's name and the release."""
    monitor = render(SETS["observed"]).one("PodMonitor")
    assert monitor["spec"]["podTargetLabels"] == ["app.kubernetes.io/name", "app.kubernetes.io/instance"]
    assert monitor["metadata"]["labels"]["release"] == "stack"


def test_rules_and_dashboards_arrive_unchanged() -> None:
    """Prometheus' and Grafana's own templates are not taken for Helm's."""
    rendered = render(SETS["observed"])
    rules = yaml.safe_load((CHART / "rules" / "alerts.yaml").read_text(encoding="utf-8"))
    assert rendered.one("PrometheusRule")["spec"] == rules
    maps = [found for found in rendered.all("ConfigMap") if "grafana_dashboard" in found["metadata"]["labels"]]
    shown = {name: json.loads(text) for found in maps for name, text in found["data"].items()}
    files = {
        f"relayrouter-{path.name}": json.loads(path.read_text(encoding="utf-8"))
        for path in CHART.glob("dashboards/*.json")
    }
    assert files
    assert shown == files


def test_policies_let_in_and_out_what_is_needed() -> None:
    """Public in, admin from monitoring and the test; Redis, DNS and the API server out; Valkey from gateways only."""
    rendered = render(SETS["scaled"])
    policy = rendered.one("NetworkPolicy", "relay-relayrouter")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [rule["ports"][0]["port"] for rule in policy["ingress"]] == ["http", "admin"]
    assert "from" not in policy["ingress"][0]
    assert [sorted({port["port"] for port in rule["ports"]}) for rule in policy["egress"]] == [
        [53],
        [6379],
        [443, 6443],
    ]
    valkey = rendered.one("NetworkPolicy", "relay-relayrouter-valkey")["spec"]
    peers = valkey["ingress"][0]["from"]
    assert _selects(
        peers[0]["podSelector"]["matchLabels"], rendered.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    )
    assert _selects(
        valkey["podSelector"]["matchLabels"], rendered.one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    )


def test_no_edge_cuts_a_quiet_stream() -> None:
    """Silence time-outs of the presets are three heartbeats and more, and what the user says wins."""
    aws = render(SETS["exposed"]).one("Ingress")["metadata"]["annotations"]
    assert aws["alb.ingress.kubernetes.io/load-balancer-attributes"] == "idle_timeout.timeout_seconds=75"
    haproxy = render(SETS["haproxy"]).one("Ingress")["metadata"]["annotations"]
    assert haproxy["haproxy.org/timeout-server"] == "75s"
    assert haproxy["haproxy.org/timeout-tunnel"] == "2h"
    route = render(SETS["exposed"]).one("HTTPRoute")["spec"]["rules"][0]
    assert route["timeouts"] == {"request": "0s", "backendRequest": "0s"}


@pytest.mark.parametrize(("name", "annotated"), [("", True), ("my-class", False)])
def test_one_class_for_an_ingress(name: str, annotated: bool) -> None:
    """Kubernetes refuses an Ingress with both the field and the old annotation."""
    ingress = render({"ingress": {"enabled": True, "preset": "gcp", "className": name}}).one("Ingress")
    assert ("kubernetes.io/ingress.class" in ingress["metadata"].get("annotations", {})) is annotated
    assert ingress["spec"].get("ingressClassName", "") == name


def test_every_way_in_leads_to_the_public_service() -> None:
    """Ingress and HTTPRoute name the Service and a port that it has."""
    rendered = render(SETS["exposed"])
    service = rendered.one("Service", "relay-relayrouter")["spec"]["ports"][0]
    backend = rendered.one("Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    assert backend == {"name": "relay-relayrouter", "port": {"name": service["name"]}}
    reference = rendered.one("HTTPRoute")["spec"]["rules"][0]["backendRefs"][0]
    assert reference == {"name": "relay-relayrouter", "port": service["port"]}
