"""What the chart refuses, and that its words help."""

from typing import Any

import pytest

from tests.chart.conftest import Refused, render, tree

WEBHOOK = {"name": "a", "url": "https://a", "existingSecret": "s", "key": "k"}
KEY = {"kid": "2026-a", "algorithm": "ES256", "existingSecret": "keys", "key": "a.pem"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicaCount": 3}, "additional properties 'replicaCount' not allowed"),
    ({"replicas": "two"}, "at '/replicas': got string, want integer"),
    (tree("config.redis.urll", "x"), "at '/config/redis': additional properties 'urll' not allowed"),
    (tree("config.retention.ttl_seconds", -1), "at '/config/retention/ttl_seconds': minimum"),
    (tree("auth.mode", "open"), "at '/auth/mode': value must be one of 'jwt', 'none'"),
    (tree("auth.keys", [{"kid": "a"}]), "missing properties 'algorithm', 'existingSecret', 'key'"),
    (tree("config.server.port", 1), "config.server.port is set by the chart; use the value service.port"),
    (tree("config.redis.sentinel_password", "s3cret"), "use the value redis.existingSentinelPasswordSecret"),
    (tree("config.webhooks.receivers", []), "use the value webhooks"),
    (tree("webhooks", [{"name": "a", "url": "https://a"}]), "missing properties 'existingSecret', 'key'"),
    (tree("webhooks", [{**WEBHOOK, "secret": "s3cret"}]), "additional properties 'secret' not allowed"),
    (tree("webhooks", [{**WEBHOOK, "attempts": 0}]), "at '/webhooks/0/attempts': minimum"),
    (tree("config.cluster.kubernetes", True), "use the value kubernetes.enabled"),
    (tree("terminationGracePeriodSeconds", 44), "too short: a drain takes up to 45 s"),
    (tree("redis.url", "http://redis"), "at '/redis/url'"),
    (tree("redis.url", "redis://me:s3cret@redis:6379"), "holds a password, which would be readable in a ConfigMap"),
    (tree("redis.url", "redis://redis:6379/0?password=s3cret"), "holds a password, which would be readable"),
    (tree("redis", {"url": "redis://a", "tls": {"existingSecret": "b"}}), "has no effect on redis://; write rediss"),
    ({"redis": {"url": "redis://a", "existingUrlSecret": "b"}}, "both set: keep one"),
    (tree("redis.tls.clientCertificate", True), "needs redis.tls.existingSecret"),
    (tree("valkey.enabled", False), "no Redis: set redis.url or redis.existingUrlSecret"),
    (tree("auth.generateDevKey", False), "nobody could come in"),
    ({"routeTable": {"data": {"routes": {}}, "existingConfigMap": "a"}}, "keep one"),
    ({"memoryWatermark": "limit", "resources": {"limits": None}}, "resources.limits.memory is not set"),
    ({"update": {"maxSurge": 0, "maxUnavailable": 0}}, "no pod could ever be replaced"),
    ({"serviceAccount": {"create": False}}, "name yours in serviceAccount.name"),
    ({"autoscaling": {"enabled": True}, "keda": {"enabled": True}}, "keep one"),
    ({"autoscaling": {"enabled": True, "minReplicas": 11}}, "minReplicas 11 is above maxReplicas 10"),
    ({"autoscaling": {"enabled": True, "targetCPUPercent": None}}, "autoscaling needs a target"),
    ({"autoscaling": {"enabled": True}, "resources": {"requests": None}}, "resources.requests.cpu, which is not set"),
    (tree("keda.enabled", True), "keda.prometheusAddress"),
    (tree("podDisruptionBudget.minAvailable", 1), "both set: set the other one to null"),
    (tree("podDisruptionBudget.maxUnavailable", 0), "no node could be drained"),
    (tree("podDisruptionBudget.maxUnavailable", None), "needs maxUnavailable or minAvailable"),
    ({"podDisruptionBudget": {"maxUnavailable": None, "minAvailable": 2}}, "minAvailable 2 of 2 pods lets no pod go"),
    ({"podDisruptionBudget": {"maxUnavailable": None, "minAvailable": "51%"}}, "51% of 2 pods lets no pod go"),
    ({"metrics": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, "every pod twice"),
    ({"metrics": {"serviceMonitor": {"enabled": True}}, "adminService": {"enabled": False}}, "through adminService"),
    (tree("httpRoute.enabled", True), "httpRoute.parentRefs"),
    ({"networkPolicy": {"enabled": True}, "ingress": {"enabled": True, "preset": "gcp"}}, "networkPolicy.adminFrom"),
    ({"networkPolicy": {"enabled": True, "redisPorts": []}, "redis": {"url": "redis://a"}}, "redisPorts is empty"),
    ({"networkPolicy": {"enabled": True, "apiServerPorts": []}}, "networkPolicy.apiServerPorts is empty"),
    (tree("extraEnv", [{"name": "A", "value": 5}]), "at '/extraEnv/0/value': got number, want string"),
    (tree("extraEnv", [{"name": "RR_DRAIN__WINDOW_SECONDS", "value": "90"}]), "use the value drain.windowSeconds"),
    (tree("redis.existingPasswordSecret", "a"), "own Valkey is valkey.auth.existingSecret"),
    (tree("auth.keys", [KEY, KEY]), "two have the kid 2026-a"),
    ({"auth": {"mode": "none", "keys": [KEY]}}, "auth.mode `none` lets everybody in without"),
    (tree("podAnnotations", {"checksum/config": "a"}), "checksum/config is the chart's own"),
    (tree("httpRoute.envoyGateway.enabled", True), "set httpRoute.enabled too"),
    (tree("image.repository", ""), "at '/image/repository'"),
    (tree("service.nodePort", 30080), "need service.type NodePort or LoadBalancer"),
    ({"redis": None}, "redis is null or has nothing below it"),
    (tree("probes.readiness", None), "probes.readiness is null or has nothing below it"),
    (tree("service.port", None), "service.port is null"),
    (tree("drain.windowSeconds", None), "drain.windowSeconds is null"),
    (tree("fullnameOverride", "My_Gateways"), "at '/fullnameOverride'"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_a_mistake_is_named(values: dict[str, Any], words: str) -> None:
    """Nothing is rendered, the message says what is wrong, and it shows no secret."""
    with pytest.raises(Refused) as refused:
        render(values)
    assert words in str(refused.value)
    assert "s3cret" not in str(refused.value)


ALLOWED: list[dict[str, Any]] = [
    {"terminationGracePeriodSeconds": 45},
    {"podDisruptionBudget": {"maxUnavailable": None, "minAvailable": 1}},
    {"podDisruptionBudget": {"maxUnavailable": None, "minAvailable": "50%"}},
    {"autoscaling": {"enabled": True, "minReplicas": 10}},
    {"redis": {"url": "redis://me@redis:6379", "existingPasswordSecret": "a"}},
    {"enabled": True, "global": {"of": "others"}},
    {"networkPolicy": {"enabled": True, "redisPorts": []}, "redis": {"url": "redis://a:6380"}},
    {"networkPolicy": {"enabled": True, "apiServerPorts": []}, "kubernetes": {"enabled": False}},
    {
        "config": None,
        "commonLabels": None,
        "podLabels": None,
        "imagePullSecrets": None,
        "global": {"imagePullSecrets": None},
    },
    {"redis": {"url": None}, "image": {"registry": None}, "service": {"annotations": None}, "keda": {"enabled": None}},
    {"ingress": {"enabled": True, "annotations": None}},
    {"auth": {"keys": [KEY, {**KEY, "kid": "2026-b"}]}},
    {"service": {"type": "NodePort", "nodePort": 30080, "externalTrafficPolicy": "Local"}},
]


@pytest.mark.parametrize("values", ALLOWED, ids=str)
def test_what_is_just_right_is_rendered(values: dict[str, Any]) -> None:
    """The neighbours of the refusals above."""
    assert render(values).one("Deployment")
