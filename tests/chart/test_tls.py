"""TLS on the gateways' own listeners: where the files come from, and who has to know of it."""

import subprocess
from typing import Any

import pytest
import yaml

from tests.chart.conftest import HELMS, Refused, render
from tests.chart.value_sets import SETS
from tools.chart.values_file import CHART

ON: dict[str, Any] = {"tls": {"existingSecret": "relay-cert"}}
WITH_ADMIN: dict[str, Any] = {"tls": {"existingSecret": "relay-cert", "admin": True}}
NAMED: dict[str, Any] = {"tls": {"existingSecret": "relay-cert", "admin": True, "serverName": "relay.example.com"}}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


def ingress(preset: str) -> dict[str, Any]:
    return {"ingress": {"enabled": True, "preset": preset}}


def test_the_settings_name_files_of_the_secret() -> None:
    rendered = render(ON)
    mount = next(one for one in rendered.gateway["volumeMounts"] if one["name"] == "tls")
    volume = next(one for one in rendered.pod["volumes"] if one["name"] == "tls")["secret"]
    files = {f"{mount['mountPath']}/{item['path']}" for item in volume["items"]}

    assert volume["secretName"] == "relay-cert"
    assert {rendered.config["tls"][name] for name in ("certificate_file", "key_file")} == files


def test_a_renewal_reaches_running_pods() -> None:
    """What is mounted by a subPath never changes."""
    mount = next(one for one in render(ON).gateway["volumeMounts"] if one["name"] == "tls")

    assert "subPath" not in mount


def test_without_a_secret_nothing_is_said_of_tls() -> None:
    rendered = render({})

    assert "tls" not in rendered.config
    assert "scheme" not in rendered.gateway["readinessProbe"]["httpGet"]


@pytest.mark.parametrize(("values", "scheme"), [(ON, "HTTP"), (WITH_ADMIN, "HTTPS")])
def test_probes_speak_what_the_admin_port_speaks(values: dict[str, Any], scheme: str) -> None:
    gateway = render(values).gateway

    assert {scheme} == {gateway[name]["httpGet"].get("scheme", "HTTP") for name in PROBES}


@pytest.mark.parametrize("monitor", ["podMonitor", "serviceMonitor"])
@pytest.mark.parametrize(
    ("values", "scraped"),
    [
        (ON, {}),
        (WITH_ADMIN, {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}),
        (NAMED, {"scheme": "https", "tlsConfig": {"serverName": "relay.example.com"}}),
        (
            {"tls": NAMED["tls"] | {"caConfigMap": "relay-ca"}},
            {
                "scheme": "https",
                "tlsConfig": {
                    "serverName": "relay.example.com",
                    "ca": {"configMap": {"name": "relay-ca", "key": "ca.crt"}},
                },
            },
        ),
    ],
)
def test_prometheus_asks_as_the_admin_port_speaks(
    values: dict[str, Any], scraped: dict[str, Any], monitor: str
) -> None:
    """By the pod's address, which no certificate has: checked by a name, or not at all."""
    found = render({**values, "metrics": {monitor: {"enabled": True}}}).one(monitor[0].upper() + monitor[1:])
    (endpoint,) = found["spec"].get("endpoints") or found["spec"]["podMetricsEndpoints"]

    assert scraped == {key: endpoint[key] for key in ("scheme", "tlsConfig") if key in endpoint}


def test_both_services_say_that_they_speak_https() -> None:
    rendered = render(ON)
    ports = [rendered.one("Service", f"relay-relayrouter{end}")["spec"]["ports"][0] for end in ("", "-headless")]

    assert ["https", "https"] == [port["appProtocol"] for port in ports]


@pytest.mark.parametrize(
    ("ca", "trusted"),
    [
        ("", {"wellKnownCACertificates": "System"}),
        ("relay-ca", {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "relay-ca"}]}),
    ],
)
def test_a_gateway_api_checks_the_name(ca: str, trusted: dict[str, Any]) -> None:
    route = {"httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]}}
    policy = render({"tls": NAMED["tls"] | {"caConfigMap": ca}} | route).one("BackendTLSPolicy")["spec"]

    assert {"hostname": "relay.example.com", **trusted} == policy["validation"]
    assert [{"group": "", "kind": "Service", "name": "relay-relayrouter"}] == policy["targetRefs"]


@pytest.mark.parametrize(
    ("known", "version"),
    [
        ((), "v1"),
        (("v1alpha3",), "v1alpha3"),
        (("v1alpha3", "v1"), "v1"),
    ],
)
def test_a_policy_has_the_version_that_the_cluster_knows(known: tuple[str, ...], version: str) -> None:
    """Gateway API 1.4 has v1, those before have v1alpha3."""
    command = [HELMS[min(HELMS)], "template", "relay", CHART, "--set", "tls.existingSecret=a,tls.serverName=b"]
    command += ["--set", "httpRoute.enabled=true,httpRoute.parentRefs[0].name=public"]
    for one in known:
        command += ["--api-versions", f"gateway.networking.k8s.io/{one}/BackendTLSPolicy"]
    text = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True).stdout
    policy = next(found for found in yaml.safe_load_all(text) if found and found["kind"] == "BackendTLSPolicy")

    assert f"gateway.networking.k8s.io/{version}" == policy["apiVersion"]


@pytest.mark.parametrize(("values", "health"), [(ON, "HTTP"), (WITH_ADMIN, "HTTPS")])
def test_amazons_balancer_speaks_https_to_people_and_what_it_must_to_the_admin_port(
    values: dict[str, Any], health: str
) -> None:
    told = render({**values, **ingress("aws")}).one("Ingress")["metadata"]["annotations"]

    assert ("HTTPS", health) == (
        told["alb.ingress.kubernetes.io/backend-protocol"],
        told["alb.ingress.kubernetes.io/healthcheck-protocol"],
    )


@pytest.mark.parametrize(("values", "health"), [(ON, "HTTP"), (WITH_ADMIN, "HTTPS")])
def test_googles_balancer_does_too(values: dict[str, Any], health: str) -> None:
    rendered = render({**values, **ingress("gcp")})
    service = rendered.one("Service", "relay-relayrouter")

    assert service["metadata"]["annotations"]["cloud.google.com/app-protocols"] == '{"http": "HTTPS"}'
    assert health == rendered.one("BackendConfig")["spec"]["healthCheck"]["type"]


def test_haproxy_speaks_tls() -> None:
    told = render({**ON, **ingress("haproxy")}).one("Ingress")["metadata"]["annotations"]

    assert told["haproxy.org/server-ssl"] == "true"
    assert "haproxy.org/backend-config-snippet" in told


def test_traefik_checks_the_name() -> None:
    rendered = render({**NAMED, **ingress("traefik")})
    told = rendered.one("Service", "relay-relayrouter")["metadata"]["annotations"]
    transport = rendered.one("ServersTransport")

    assert told == {
        "traefik.ingress.kubernetes.io/service.serversscheme": "https",
        "traefik.ingress.kubernetes.io/service.serverstransport": "default-relay-relayrouter@kubernetescrd",
    }
    assert transport["spec"] == {"serverName": "relay.example.com"}


@pytest.mark.parametrize("preset", ["none", "traefik", "haproxy", "aws", "gcp"])
def test_without_tls_no_preset_speaks_of_it(preset: str) -> None:
    rendered = render(ingress(preset))
    annotations = rendered.one("Ingress")["metadata"].get("annotations", {})
    annotations |= rendered.one("Service", "relay-relayrouter")["metadata"].get("annotations", {})
    told = {key for key in annotations if "protocol" in key or "ssl" in key or "serversscheme" in key}

    assert not told
    assert not rendered.all("ServersTransport")


def test_the_test_pod_knows_the_authority() -> None:
    rendered = render(SETS["tls"])
    container = rendered.one("Pod")["spec"]["containers"][0]
    environ = {one["name"]: one["value"] for one in container["env"]}
    mounted = {one["mountPath"] for one in container["volumeMounts"]}

    assert (environ["RR_URL"], environ["ADMIN_URL"], environ["SSL_CERT_FILE"]) == (
        "https://relay-relayrouter.default.svc:80",
        "https://relay-relayrouter-admin:9090",
        "/etc/relayrouter/ca/ca.crt",
    )
    assert "/etc/relayrouter/ca" in mounted


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tls": {"admin": True}}, "name its Secret in tls.existingSecret"),
    ({"tls": {"serverName": "a"}}, "name its Secret in tls.existingSecret"),
    ({"tls": {"existingSecret": "a", "caConfigMap": "b"}}, "has no effect without tls.serverName"),
    ({"tls": {"existingSecret": "a", "minimumVersion": "1.1"}}, "must be one of '1.2', '1.3'"),
    ({**ON, "httpRoute": {"enabled": True, "parentRefs": [{"name": "a"}]}}, "BackendTLSPolicy for the httpRoute"),
    ({**ON, **ingress("traefik")}, "Traefik checks their certificate"),
    ({"config": {"tls": {"key_file": "/a"}}}, "use the value tls.existingSecret"),
    ({"config": {"tls": {"admin": True}}}, "use the value tls.admin"),
]


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_mistake_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        render(values)
