"""Sets of values that between them turn everything on; each is also what somebody might write."""

from typing import Any

BROUGHT: dict[str, Any] = {
    "redis": {"url": "redis+sentinel://s0:26379,s1:26379/mymaster/0", "existingPasswordSecret": "relay-redis"},
    "auth": {"keys": [{"kid": "a", "algorithm": "ES256", "existingSecret": "relay-keys", "key": "a.pem"}]},
}

SETS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "sentinel": {
        "redis": {
            **BROUGHT["redis"],
            "url": "rediss+sentinel://s0:26379,s1:26379/mymaster/0",
            "existingSentinelPasswordSecret": "relay-sentinels",
            "tls": {"existingSecret": "relay-tls", "clientCertificate": True, "serverName": "redis.internal"},
        },
        "auth": {
            "keys": [
                {"kid": "old", "algorithm": "HS256", "existingSecret": "relay-keys", "key": "old"},
                {"kid": "new", "algorithm": "ES256", "existingSecret": "relay-keys", "key": "new.pem"},
            ]
        },
        "webhooks": [
            {
                "name": "agent",
                "url": "https://agent.example.com/items",
                "existingSecret": "relay-hooks",
                "key": "agent",
                "kinds": ["input"],
            }
        ],
        "config": {
            "webhooks": {"parallel": 4},
            "append": {"min_replicas": 1},
            "quotas": {"connections": 1000},
            "limits": {"message_bytes": "32 KiB"},
        },
    },
    "cluster_by_secret": {
        "redis": {"existingUrlSecret": "relay-redis"},
        "auth": BROUGHT["auth"],
        "networkPolicy": {
            "enabled": True,
            "redisPorts": [6379, 16379],
            "redisTo": [{"ipBlock": {"cidr": "10.1.0.0/16"}}],
        },
    },
    "scaled": {
        "autoscaling": {"enabled": True, "targetConnections": 2000, "targetOpenRuns": 50, "minReplicas": 3},
        "networkPolicy": {"enabled": True},
        "memoryWatermark": "limit",
        "drain": {"preStopSeconds": 5},
        "routeTable": {"data": {"routes": {"model_text": {"invoice": {"channel": "webhook", "fallback": "queue"}}}}},
    },
    "keda": {
        "keda": {"enabled": True, "prometheusAddress": "http://prometheus:9090", "targetOpenRuns": 50},
        "auth": {"mode": "none"},
    },
    "observed": {
        "metrics": {
            "podMonitor": {"enabled": True, "labels": {"release": "stack"}},
            "prometheusRule": {"enabled": True, "labels": {"release": "stack"}},
            "dashboards": {"enabled": True, "annotations": {"folder": "relay"}},
        },
    },
    "exposed": {
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}], "hostnames": ["relay.example.com"]},
        "ingress": {
            "enabled": True,
            "preset": "aws",
            "className": "alb",
            "hosts": ["relay.example.com"],
            "tls": [{"hosts": ["relay.example.com"], "secretName": "relay-cert"}],
        },
        "service": {"type": "NodePort", "nodePort": 30080, "externalTrafficPolicy": "Local"},
    },
    "tls": {
        "tls": {
            "existingSecret": "relay-cert",
            "admin": True,
            "minimumVersion": "1.3",
            "serverName": "relay.example.com",
            "caConfigMap": "relay-ca",
        },
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
        "ingress": {"enabled": True, "preset": "traefik"},
        "metrics": {"serviceMonitor": {"enabled": True}},
    },
    "tls_public": {
        "tls": {"existingSecret": "relay-cert", "admin": True},
        "metrics": {"podMonitor": {"enabled": True}},
        "ingress": {"enabled": True, "preset": "gcp"},
    },
    "google": {"ingress": {"enabled": True, "preset": "gcp"}},
    "envoy": {
        "httpRoute": {
            "enabled": True,
            "parentRefs": [{"name": "public"}],
            "envoyGateway": {"enabled": True, "hashOn": "path"},
        },
    },
    "limited": {
        "redis": {"url": "redis+sentinel://s0:26379,s1:26379/mymaster/0"},
        "networkPolicy": {
            "enabled": True,
            "publicFrom": [{"namespaceSelector": {"matchLabels": {"edge": "yes"}}}],
            "adminFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
            "extraEgress": [{"ports": [{"port": 443, "protocol": "TCP"}]}],
        },
        "ingress": {"enabled": True, "preset": "aws"},
    },
    "haproxy": {"ingress": {"enabled": True, "preset": "haproxy", "annotations": {"haproxy.org/timeout-tunnel": "2h"}}},
    "own": {
        "nameOverride": "gate",
        "replicas": 1,
        "commonLabels": {"team": "chat"},
        "podLabels": {"sidecar": "no"},
        "podAnnotations": {"note": "yes"},
        "priorityClassName": "high",
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ],
        "imagePullSecrets": ["mine"],
        "global": {"imageRegistry": "mirror.internal", "imagePullSecrets": ["theirs"], "other": 1},
        "image": {"digest": "sha256:" + "a" * 64},
        "extraEnv": [{"name": "RR_LOG__LEVEL", "value": "debug"}],
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "extraVolumes": [{"name": "x", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "x", "mountPath": "/x"}],
        "extraContainers": [{"name": "side", "image": "side:1"}],
        "extraInitContainers": [{"name": "first", "image": "first:1"}],
        "extraManifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-more"}},
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text-{{ .Release.Name }}\n",
        ],
        "serviceAccount": {"create": False, "name": "mine"},
        "kubernetes": {"enabled": False},
        "valkey": {"persistence": {"enabled": False}, "auth": {"existingSecret": "v"}, "command": ["redis-server"]},
        "podDisruptionBudget": {"enabled": False},
        "routeTable": {"existingConfigMap": "my-routes"},
        "tests": {"enabled": False},
    },
}
