"""deploy/k8s: what the chart renders with its defaults, as plain files for `kubectl apply -k`.

Left out are secrets, which nobody can commit (make_secrets.sh makes them once), and what only Helm reads.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.chart.values_file import CHART

FOLDER = CHART.parents[1] / "k8s"
NAME = NAMESPACE = "relayrouter"
_OF_HELM = ("helm.sh/chart", "app.kubernetes.io/managed-by")
_HEAD = "# Made from the chart's defaults by `python -m tools.chart manifests`: change the chart, or use an overlay.\n"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  the name is the library's
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def plain_manifests(helm: Path) -> dict[str, str]:
    """File name -> text. CalledProcessError where the chart does not render."""
    rendered = [_plain(found) for found in _rendered(helm) if _is_wanted(found)]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    files = {f"{_name(found)}.yaml": _dump(found) for found in [namespace, *rendered]}
    return files | {"kustomization.yaml": _kustomization(sorted(files))}


def _rendered(helm: Path) -> Iterator[dict[str, Any]]:
    command = [helm, "template", NAME, CHART, "--namespace", NAMESPACE]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S603
    yield from (document for document in yaml.safe_load_all(told) if document)


def _is_wanted(found: dict[str, Any]) -> bool:
    is_hook = "helm.sh/hook" in found["metadata"].get("annotations", {})
    return not is_hook and found["kind"] != "Secret"


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    labels = found["metadata"]["labels"]
    found["metadata"]["labels"] = {key: value for key, value in labels.items() if key not in _OF_HELM}
    return found


def _name(found: dict[str, Any]) -> str:
    return f"{found['kind'].lower()}-{found['metadata']['name']}"


def _dump(found: dict[str, Any]) -> str:
    return _HEAD + yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=140)


def _kustomization(resources: list[str]) -> str:
    secrets = [
        {"name": f"{NAME}-valkey", "files": ["redis-password=secrets/redis-password"]},
        {"name": f"{NAME}-dev-key", "files": ["dev-secret=secrets/dev-secret"]},
    ]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": NAMESPACE,
        "resources": resources,
        "secretGenerator": secrets,
        # Pods find them by these names; a password is not changed by the way.
        "generatorOptions": {"disableNameSuffixHash": True},
    }
    return _HEAD + _dump(kustomization).removeprefix(_HEAD)
