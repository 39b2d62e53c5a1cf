"""Services, monitors, network policies and exposure (H04, K10)."""

import json
import re
from typing import Any

import pytest
import yaml

from gateway.settings import ServerSettings
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


def _annotations(name: str) -> dict[str, str]:
    annotations: dict[str, str] = render(SETS[name]).one("Ingress")["metadata"]["annotations"]
    return annotations


def test_no_edge_cuts_a_quiet_stream() -> None:
    """Silence time-outs of the presets are three heartbeats and more; where it is a limit of the whole life, a day."""
    assert "idle_timeout.timeout_seconds=75" in _annotations("exposed").values()
    snippet = _annotations("haproxy")["haproxy.org/backend-config-snippet"].splitlines()
    assert {"timeout server 75s", "timeout tunnel 75s"} <= set(snippet)
    assert render(SETS["google"]).one("BackendConfig")["spec"]["timeoutSec"] == 86400
    route = render(SETS["exposed"]).one("HTTPRoute")["spec"]["rules"][0]
    assert route["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert render(SETS["envoy"]).one("BackendTrafficPolicy")["spec"]["timeout"]["http"]["requestTimeout"] == "0s"


def test_the_gateway_keeps_idle_connections_for_longer_than_the_edge() -> None:
    """Who closes second never answers a request with a reset: 600 s at Google's, 75 s at an ALB, 60 s at Envoy's."""
    default = ServerSettings().keepalive_seconds
    assert render(SETS["google"]).config["server"]["keepalive_seconds"] > 600
    assert default > 75
    envoy = render(SETS["envoy"]).one("BackendTrafficPolicy")["spec"]["timeout"]["http"]["connectionIdleTimeout"]
    assert int(envoy.removesuffix("s")) < default


def test_a_setting_of_the_user_wins_over_a_preset() -> None:
    """Also where the preset is a setting of the gateway, and where it is an annotation."""
    values = {"ingress": {"enabled": True, "preset": "gcp"}, "config": {"server": {"keepalive_seconds": 700}}}
    assert render(values).config["server"]["keepalive_seconds"] == 700
    key = "alb.ingress.kubernetes.io/load-balancer-attributes"
    own = {"ingress": {"enabled": True, "preset": "aws", "annotations": {key: "idle_timeout.timeout_seconds=90"}}}
    assert render(own).one("Ingress")["metadata"]["annotations"][key] == "idle_timeout.timeout_seconds=90"


def test_an_edge_waits_for_as_long_as_a_drain_takes() -> None:
    """Both clouds let a pod that leaves keep its connections until it has drained."""
    grace = render(SETS["google"]).pod["terminationGracePeriodSeconds"]
    assert render(SETS["google"]).one("BackendConfig")["spec"]["connectionDraining"]["drainingTimeoutSec"] == grace
    group = _annotations("exposed")["alb.ingress.kubernetes.io/target-group-attributes"]
    assert f"deregistration_delay.timeout_seconds={grace}" in group.split(",")


@pytest.mark.parametrize(
    ("hash_on", "header", "has_lua"), [("header", "X-Session-ID", False), ("path", "X-RelayRouter-Session", True)]
)
def test_envoy_gateway_hashes_on_the_session(hash_on: str, header: str, has_lua: bool) -> None:
    """By the header that clients send, or by the one that the Lua makes of the path."""
    envoy = {**SETS["envoy"]["httpRoute"], "envoyGateway": {"enabled": True, "hashOn": hash_on}}
    rendered = render({"httpRoute": envoy})
    balancer = rendered.one("BackendTrafficPolicy")["spec"]["loadBalancer"]
    assert balancer["consistentHash"] == {"type": "Header", "header": {"name": header}}
    lua = [found["spec"]["lua"][0]["inline"] for found in rendered.all("EnvoyExtensionPolicy")]
    assert [header.lower() in source for source in lua] == [True] * has_lua


def test_where_few_may_come_the_test_may() -> None:
    """`helm test` reads and writes through the public port, whoever else is let in."""
    rendered = render(SETS["limited"])
    public = rendered.one("NetworkPolicy", "relay-relayrouter")["spec"]["ingress"][0]["from"]
    labels = rendered.one("Pod")["metadata"]["labels"]
    assert public[0] == SETS["limited"]["networkPolicy"]["publicFrom"][0]
    assert [_selects(peer["podSelector"]["matchLabels"], labels) for peer in public[1:]] == [True]


@pytest.mark.parametrize(
    ("url", "ports"),
    [
        ("redis://redis", [6379]),
        ("rediss://me@redis:6380/0", [6379, 6380]),
        ("redis+sentinel://s0:26379,s1:26379/mymaster/0", [6379, 26379]),
        ("redis+cluster://a:7000,b:7001", [6379, 7000, 7001]),
        ("redis://[fd00::10]:6400/0", [6379, 6400]),
    ],
)
def test_a_policy_lets_out_to_the_ports_of_the_address(url: str, ports: list[int]) -> None:
    """Nobody has to say them twice."""
    policy = render({"redis": {"url": url}, "networkPolicy": {"enabled": True}}).one("NetworkPolicy")
    assert [port["port"] for port in policy["spec"]["egress"][1]["ports"]] == ports


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


def test_runbooks_are_where_the_operator_serves_them() -> None:
    """Every alert's link begins with the value, without a double slash."""
    values = {"metrics": {"prometheusRule": {"enabled": True, "runbooks": "https://wiki.example.com/rr/"}}}
    groups = render(values).one("PrometheusRule")["spec"]["groups"]
    links = [rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"] if "alert" in rule]
    assert links != []
    assert [link for link in links if not re.fullmatch(r"https://wiki\.example\.com/rr/[a-z-]+\.md", link)] == []
