"""values.schema.json: closed everywhere, types from the defaults, what they cannot say from the table below.

`config` is the gateway's own settings with their ranges, so that a mistake is found before a pod starts with it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.settings import Settings
from tools.chart.values_file import Row

Schema = dict[str, Any]

_STRINGS: Schema = {"type": "array", "items": {"type": "string", "minLength": 1}}
_NAMES: Schema = {
    "type": "array",
    "items": {
        "anyOf": [
            _STRINGS["items"],
            {"type": "object", "required": ["name"], "properties": {"name": _STRINGS["items"]}},
        ]
    },
}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_ANNOTATIONS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_OPEN: Schema = {"type": "object"}
_SHARE: Schema = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,3}%$"}]}
_SHARE_OR_NOT: Schema = {"anyOf": [*_SHARE["anyOf"], {"type": "null"}]}
_TARGET: Schema = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}
_PULL: Schema = {"enum": ["Always", "IfNotPresent", "Never"]}
_DIGEST: Schema = {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}
_ENV: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "minLength": 1}, "value": {"type": "string"}},
    },
}
_NAME: Schema = {"type": "string", "pattern": "^([a-z]([-a-z0-9]*[a-z0-9])?)?$"}
_PORTS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}}
_MANIFESTS: Schema = {"type": "array", "items": {"type": ["object", "string"]}}
_KEYS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["kid", "algorithm", "existingSecret", "key"],
        "properties": {
            "kid": {"type": "string", "minLength": 1, "maxLength": 128},
            "algorithm": {"enum": ["HS256", "RS256", "ES256", "EdDSA"]},
            "existingSecret": {"type": "string", "minLength": 1},
            "key": {"type": "string", "minLength": 1},
        },
    },
}
_WEBHOOKS: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "url", "existingSecret", "key"],
        "properties": {
            "existingSecret": {"type": "string", "minLength": 1},
            "key": {"type": "string", "minLength": 1},
        },
    },
}
"""The rest is a receiver's own; added by `schema_of`."""
_AT_LEAST_ONE: Schema = {"type": "integer", "minimum": 1}

SPECIAL: Mapping[str, Schema] = {
    "global.imagePullSecrets": _NAMES,
    "imagePullSecrets": _STRINGS,
    "nameOverride": _NAME,
    "fullnameOverride": _NAME,
    "commonLabels": _ANNOTATIONS,
    "image.pullPolicy": _PULL,
    "image.repository": _STRINGS["items"],
    "image.digest": _DIGEST,
    "update.maxSurge": _SHARE,
    "update.maxUnavailable": _SHARE,
    "terminationGracePeriodSeconds": _TARGET,
    "replicas": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]},
    "extraEnv": _ENV,
    "extraEnvFrom": _OBJECTS,
    "auth.mode": {"enum": ["jwt", "none"]},
    "auth.keys": _KEYS,
    "webhooks": _WEBHOOKS,
    "tls.minimumVersion": {"enum": ["1.2", "1.3"]},
    "redis.url": {"type": "string", "pattern": r"^(rediss?(\+(sentinel|cluster))?://.+)?$"},
    "valkey.image.pullPolicy": _PULL,
    "valkey.image.digest": _DIGEST,
    "valkey.command": {**_STRINGS, "minItems": 1},
    "valkey.resources": _OPEN,
    "valkey.podSecurityContext": _OPEN,
    "valkey.securityContext": _OPEN,
    "resources": _OPEN,
    "memoryWatermark": {"enum": ["cgroup", "limit"]},
    "probes.startup.failureThreshold": _AT_LEAST_ONE,
    "probes.readiness.periodSeconds": _AT_LEAST_ONE,
    "probes.readiness.failureThreshold": _AT_LEAST_ONE,
    "probes.readiness.timeoutSeconds": _AT_LEAST_ONE,
    "probes.liveness.periodSeconds": _AT_LEAST_ONE,
    "probes.liveness.failureThreshold": _AT_LEAST_ONE,
    "probes.liveness.timeoutSeconds": _AT_LEAST_ONE,
    "probes.liveness.terminationGracePeriodSeconds": _AT_LEAST_ONE,
    "serviceAccount.annotations": _ANNOTATIONS,
    "service.type": {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    "service.port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "service.nodePort": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "null"}]},
    "service.externalTrafficPolicy": {"enum": ["", "Cluster", "Local"]},
    "service.loadBalancerSourceRanges": _STRINGS,
    "service.annotations": _ANNOTATIONS,
    "adminService.annotations": _ANNOTATIONS,
    "podDisruptionBudget.maxUnavailable": _SHARE_OR_NOT,
    "podDisruptionBudget.minAvailable": _SHARE_OR_NOT,
    "autoscaling.minReplicas": _AT_LEAST_ONE,
    "autoscaling.maxReplicas": _AT_LEAST_ONE,
    "autoscaling.targetCPUPercent": _TARGET,
    "autoscaling.targetConnections": _TARGET,
    "autoscaling.targetOpenRuns": _TARGET,
    "autoscaling.scaleUp.pods": _AT_LEAST_ONE,
    "autoscaling.scaleUp.periodSeconds": _AT_LEAST_ONE,
    "autoscaling.scaleDown.pods": _AT_LEAST_ONE,
    "autoscaling.scaleDown.periodSeconds": _AT_LEAST_ONE,
    "keda.targetConnections": _AT_LEAST_ONE,
    "keda.targetOpenRuns": _TARGET,
    "keda.pollingInterval": _AT_LEAST_ONE,
    "topologySpreadConstraints": _OBJECTS,
    "nodeSelector": _ANNOTATIONS,
    "tolerations": _OBJECTS,
    "podAnnotations": _ANNOTATIONS,
    "podLabels": _ANNOTATIONS,
    "podSecurityContext": _OPEN,
    "securityContext": _OPEN,
    "extraVolumes": _OBJECTS,
    "extraVolumeMounts": _OBJECTS,
    "extraContainers": _OBJECTS,
    "extraInitContainers": _OBJECTS,
    "extraManifests": _MANIFESTS,
    "networkPolicy.publicFrom": _OBJECTS,
    "networkPolicy.adminFrom": _OBJECTS,
    "networkPolicy.redisTo": _OBJECTS,
    "networkPolicy.redisPorts": _PORTS,
    "networkPolicy.apiServerPorts": _PORTS,
    "networkPolicy.extraEgress": _OBJECTS,
    "httpRoute.parentRefs": _OBJECTS,
    "httpRoute.hostnames": _STRINGS,
    "httpRoute.annotations": _ANNOTATIONS,
    "httpRoute.envoyGateway.hashOn": {"enum": ["header", "path"]},
    "ingress.preset": {"enum": ["none", "traefik", "haproxy", "aws", "gcp"]},
    "ingress.hosts": _STRINGS,
    "ingress.tls": _OBJECTS,
    "ingress.annotations": _ANNOTATIONS,
    "metrics.podMonitor.labels": _ANNOTATIONS,
    "metrics.podMonitor.intervalSeconds": _AT_LEAST_ONE,
    "metrics.serviceMonitor.labels": _ANNOTATIONS,
    "metrics.serviceMonitor.intervalSeconds": _AT_LEAST_ONE,
    "metrics.prometheusRule.labels": _ANNOTATIONS,
    "metrics.dashboards.labels": _ANNOTATIONS,
    "metrics.dashboards.annotations": _ANNOTATIONS,
}


def schema_of(rows: Iterable[Row]) -> Schema:
    """ValueError: the table names a value that is not there, or a default says no type and the table has none."""
    rows = list(rows)
    stale = sorted(set(SPECIAL) - {row.dotted for row in rows})
    if stale:
        raise ValueError(f"tools/chart/schema.py names values that values.yaml has not: {', '.join(stale)}")
    root = _closed()
    for row in rows:
        place = root
        for key in row.path[:-1]:
            place = place["properties"].setdefault(key, _closed())
        place["properties"][row.path[-1]] = _of(row) | {"description": row.why}
    # Parent charts share `global`, and switch a sub-chart by `enabled`.
    root["properties"]["global"]["additionalProperties"] = True
    root["properties"]["enabled"] = {"type": "boolean", "description": "For parent charts; has no effect here."}
    config, definitions = _settings()
    receiver = {
        name: inner for name, inner in definitions["Receiver"]["properties"].items() if not name.startswith("secret")
    }
    given = root["properties"]["webhooks"]["items"]
    root["properties"]["webhooks"]["items"] = given | {"properties": receiver | given["properties"]}
    root["properties"]["config"] = config | {"description": root["properties"]["config"]["description"]}
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "relayrouter", **root, "$defs": definitions}


def _closed() -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _of(row: Row) -> Schema:
    if row.dotted in SPECIAL:
        return dict(SPECIAL[row.dotted])
    match row.default:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "minimum": 0}
        case str():
            return {"type": "string"}
        case {}:
            return {"type": "object"}
        case _:
            raise ValueError(f"tools/chart/schema.py: say in SPECIAL what {row.dotted} may be")


def _settings() -> tuple[Schema, Schema]:
    """The topics' schema and its definitions."""
    whole = Settings.model_json_schema()
    definitions = {name: _plain(inner) for name, inner in whole["$defs"].items()}
    topics = {name: _plain(inner) for name, inner in whole["properties"].items()}
    return {"type": "object", "additionalProperties": False, "properties": topics}, definitions


def _plain(schema: Any, name: str = "") -> Any:
    """Without defaults and titles (docs/configuration.md has them); sizes and lists also as files write them."""
    if isinstance(schema, list):
        return [_plain(inner, name) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"default", "title", "description", "format", "writeOnly", "examples"}
    plain: Schema = {}
    for key, inner in schema.items():
        if key == "properties":
            plain[key] = {inner_name: _plain(value, inner_name) for inner_name, value in inner.items()}
        elif key not in dropped:
            plain[key] = _plain(inner, name)
    if plain.get("type") == "integer" and re.search(r"(^|_)bytes(_|$)", name):
        return {"anyOf": [plain, {"type": "string", "pattern": "^[0-9]+ *(B|KiB|MiB|GiB)?$"}]}
    if plain.get("type") == "array" and plain.get("items", {}).get("type") == "string":
        return {"anyOf": [plain, {"type": "string"}]}
    return plain
