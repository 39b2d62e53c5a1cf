"""The little of an API server that Helm's `lookup` asks: what kinds there are, and one Secret by its name."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

Object = dict[str, Any]
_KINDS: Final = {
    "v1": ("ConfigMap", "Secret", "Service", "ServiceAccount"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "policy/v1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
}
"""Of the chart's defaults: Helm 4 wants to know each that it renders."""
_VERSION: Final = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"}


class Secrets:
    """What the cluster has, by namespace and name. `asked` are the paths of the Secrets that were looked for."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Object] = {}
        self.asked: list[str] = []
        self.url = ""

    def apply(self, objects: list[Object], release: str) -> None:
        """As Helm does with what it has rendered: it notes whose they are."""
        for one in objects:
            if one["kind"] == "Secret":
                told = one["metadata"]
                owner = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": told["namespace"]}
                metadata = {**told, "annotations": {**told.get("annotations", {}), **owner}}
                self.found[told["namespace"], told["name"]] = {**one, "metadata": metadata}

    def answer(self, path: str) -> Object | None:
        match path.partition("?")[0].strip("/").split("/"):
            case ["version"]:
                return _VERSION
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"]}
            case ["apis"]:
                return {"kind": "APIGroupList", "groups": [_group(one) for one in _KINDS if "/" in one]}
            case ["api", "v1"]:
                return _kinds("v1")
            case ["apis", group, version] if f"{group}/{version}" in _KINDS:
                return _kinds(f"{group}/{version}")
            case ["api", "v1", "namespaces", namespace, "secrets", name]:
                self.asked.append(f"{namespace}/{name}")
                return self.found.get((namespace, name))
        return None


def _group(group_version: str) -> Object:
    version = {"groupVersion": group_version, "version": group_version.partition("/")[2]}
    return {"name": group_version.partition("/")[0], "versions": [version], "preferredVersion": version}


def _kinds(group_version: str) -> Object:
    common = {"namespaced": True, "verbs": ["get"]}
    resources = [{"name": f"{kind.lower()}s", "kind": kind, **common} for kind in _KINDS[group_version]]
    return {"kind": "APIResourceList", "groupVersion": group_version, "resources": resources}


@contextmanager
def serving() -> Iterator[Secrets]:
    secrets = Secrets()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = secrets.answer(self.path)
            body = json.dumps(found or {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        secrets.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield secrets
        server.shutdown()
        thread.join()
