"""Each value of values.yaml does something: another one renders other objects. What is nothing is taken as given."""

from typing import Any

import pytest

from tests.chart.conftest import render, tree
from tools.chart.schema import SPECIAL
from tools.chart.values_file import CHART, Row, read_values

ROWS = read_values((CHART / "values.yaml").read_text(encoding="utf-8"))
URL = "redis://redis:6379/0"
BESIDE: dict[str, dict[str, Any]] = {
    "": {},
    "redis.existingUrlSecretKey": tree("redis.existingUrlSecret", "s"),
    "redis.existingPasswordSecret": tree("redis.url", URL),
    "redis.existingPasswordSecretKey": {"redis": {"url": URL, "existingPasswordSecret": "s"}},
    "redis.existingSentinelPasswordSecretKey": tree("redis.existingSentinelPasswordSecret", "s"),
    "redis.tls.existingSecret": tree("redis.url", "rediss://other:6380/1"),
    "redis.tls.clientCertificate": {"redis": {"url": "rediss://other:6380/1", "tls": {"existingSecret": "s"}}},
    "service.nodePort": tree("service.type", "NodePort"),
    "service.externalTrafficPolicy": tree("service.type", "NodePort"),
    "service.loadBalancerSourceRanges": tree("service.type", "LoadBalancer"),
    "tls.": tree("tls.existingSecret", "s"),
    "tls.serverName": {"tls": {"existingSecret": "s", "admin": True}, "metrics": {"podMonitor": {"enabled": True}}},
    "tls.caConfigMap": {
        "tls": {"existingSecret": "s", "admin": True, "serverName": "relay"},
        "metrics": {"podMonitor": {"enabled": True}},
    },
    "podDisruptionBudget.minAvailable": {"podDisruptionBudget": {"maxUnavailable": None, "minAvailable": 0}},
    "serviceAccount.create": {"serviceAccount": {"name": "mine"}},
    "networkPolicy.redis": {"networkPolicy": {"enabled": True}, "redis": {"url": URL}},
    "networkPolicy.": tree("networkPolicy.enabled", True),
    "autoscaling.": tree("autoscaling.enabled", True),
    "keda.": {"keda": {"enabled": True, "prometheusAddress": "http://p"}},
    "httpRoute.envoyGateway.hashOn": {
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "a"}], "envoyGateway": {"enabled": True}}
    },
    "httpRoute.": {"httpRoute": {"enabled": True, "parentRefs": [{"name": "a"}]}},
    "ingress.": tree("ingress.enabled", True),
    "metrics.podMonitor.": tree("metrics.podMonitor.enabled", True),
    "metrics.serviceMonitor.": tree("metrics.serviceMonitor.enabled", True),
    "metrics.prometheusRule.": tree("metrics.prometheusRule.enabled", True),
    "metrics.dashboards.": tree("metrics.dashboards.enabled", True),
}
"""What has to be set as well, by the value's name or what it begins with; the longest that fits. A switch has none."""
OTHER: dict[str, Any] = {
    "image.digest": "sha256:" + "a" * 64,
    "valkey.image.digest": "sha256:" + "a" * 64,
    "config": {"retention": {"ttl_seconds": 900}},
    "terminationGracePeriodSeconds": 300,
    "auth.keys": [{"kid": "a", "algorithm": "HS256", "existingSecret": "s", "key": "k"}],
    "webhooks": [{"name": "a", "url": "https://a", "existingSecret": "s", "key": "k"}],
    "redis.url": URL,
    "ingress.preset": "haproxy",
    "global.imagePullSecrets": ["theirs", {"name": "ours"}],
    "extraManifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more"}}],
}
NO_EFFECT_ALONE = {"auth.generateDevKey": "nobody could come in", "valkey.enabled": "no Redis"}
"""Their other value is refused, with these words (test_refusals.py)."""


def _beside(dotted: str) -> dict[str, Any]:
    if dotted.endswith(".enabled") and dotted != "httpRoute.envoyGateway.enabled":
        return {"keda": {"prometheusAddress": "http://p"}, "httpRoute": {"parentRefs": [{"name": "a"}]}}
    return BESIDE[max((start for start in BESIDE if dotted.startswith(start)), key=len, default="")]


def _other(row: Row) -> Any:
    """A value that its schema allows and that is not the default."""
    if row.dotted in OTHER:
        return OTHER[row.dotted]
    schema = SPECIAL.get(row.dotted, {})
    kinds = {schema.get("type"), *(one.get("type") for one in schema.get("anyOf", ()))}
    match row.default:
        case _ if "enum" in schema:
            return next(one for one in schema["enum"] if one != row.default)
        case bool():
            return not row.default
        case int() | None if "integer" in kinds or row.default is not None:
            return (row.default or 0) + 1
        case str():
            return "other"
        case list():
            return {"string": ["other"], "integer": [7], "object": [{"name": "other"}]}[schema["items"]["type"]]
        case dict():
            return {"other": "value"}
    raise AssertionError(f"say in OTHER what {row.dotted} may be")


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """`other` wins."""
    both = dict(one)
    for key, value in other.items():
        inner = both.get(key)
        both[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return both


def _without_made_passwords(values: dict[str, Any]) -> list[Any]:
    objects = render(values).objects
    return [{**one, "data": sorted(one["data"])} if one["kind"] == "Secret" else one for one in objects]


@pytest.mark.parametrize("row", [row for row in ROWS if row.dotted not in NO_EFFECT_ALONE], ids=lambda row: row.dotted)
def test_another_value_renders_something_else(row: Row) -> None:
    """A value that changes nothing is a promise that nobody keeps."""
    beside = _beside(row.dotted)

    changed = _merged(beside, tree(row.dotted, _other(row)))

    assert _without_made_passwords(changed) != _without_made_passwords(beside)


@pytest.mark.parametrize(
    ("key", "nothing"),
    [
        ("admission.new_per_second", 0),
        ("append.min_replicas", 0),
        ("readiness.redis_grace_seconds", 0),
        ("server.query_token", False),
        ("server.allowed_origins", ""),
    ],
)
def test_a_setting_of_nothing_is_no_setting_left_out(key: str, nothing: Any) -> None:
    """0, false and empty text arrive as they are given (H06), also in topics of which the chart sets a part."""
    topic, name = key.split(".")

    assert render(tree(f"config.{key}", nothing)).config[topic][name] == nothing
