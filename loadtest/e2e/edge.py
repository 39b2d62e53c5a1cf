"""Envoy as a pod in front of a site, with the configuration that we publish: only the addresses are put in."""

import re
from pathlib import Path
from typing import Any, Final

from loadtest.e2e.place import Place
from loadtest.e2e.site import Site
from loadtest.e2e.tool import ROOT

PUBLISHED: Final = ROOT / "deploy" / "proxies" / "envoy.yaml"
NAME: Final = "edge"
PORT: Final = 8000
READY_SECONDS: Final = 90
_ENDPOINT: Final = re.compile(
    r"( +)- endpoint:\n +address: \{socket_address: \{address: gateway-(\d+), port_value: 8080\}\}\n"
    r" +health_check_config: \{port_value: 9090\}\n"
)


def configuration(host: str, published: Path = PUBLISHED) -> str:
    """With one name in the place of the three endpoints: DNS has all ready pods under it. Raises ValueError."""
    text = published.read_text(encoding="utf-8")
    found = list(_ENDPOINT.finditer(text))
    if not found:
        raise ValueError(f"{published.name} has no endpoints gateway-0, gateway-1, ...")
    for match in reversed(found[1:]):
        text = text[: match.start()] + text[match.end() :]
    return text.replace("address: gateway-0,", f"address: {host},")


async def edge(place: Place, site: Site) -> str:
    """Its URL, once it is ready; it goes with the site's namespace."""
    image = await place.images.envoy()
    host = f"{site.fullname}-headless.{site.namespace}.svc.cluster.local"
    await place.tool.apply(*manifests(site.namespace, image, configuration(host)))
    await place.tool.kubectl(
        "rollout", "status", f"deployment/{NAME}", "-n", site.namespace, f"--timeout={READY_SECONDS}s"
    )
    told = await place.tool.kubectl_json("get", "service", NAME, "-n", site.namespace)
    return f"http://{told['spec']['clusterIP']}"


def manifests(namespace: str, image: str, envoy: str) -> list[dict[str, Any]]:
    meta = {"name": NAME, "namespace": namespace}
    labels = {"app": NAME}
    container = {
        "name": "envoy",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-c", "/etc/envoy/envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "-l", "warning"],
        "ports": [{"name": "public", "containerPort": PORT}],
        "readinessProbe": {"tcpSocket": {"port": "public"}, "periodSeconds": 1},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/envoy"}],
    }
    spec = {"containers": [container], "volumes": [{"name": "config", "configMap": {"name": NAME}}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"envoy.yaml": envoy}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": "public"}]},
        },
    ]


__all__ = ["configuration", "edge", "manifests"]
