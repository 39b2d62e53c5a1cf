"""deploy/k8s as `kubectl apply -k` reads it, and the secrets that go with it."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.chart.conftest import Rendered, render
from tools.chart.manifests import FOLDER

CACHE = Path(os.environ.get("RR_CLUSTER_CACHE", Path.home() / ".cache" / "rr-cluster")) / "bin"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "k8s", ignore=shutil.ignore_patterns("secrets")))


def _made(folder: Path) -> dict[str, str]:
    subprocess.run([folder / "make_secrets.sh"], check=True, timeout=50, capture_output=True)
    return {path.name: path.read_text() for path in (folder / "secrets").iterdir()}


@functools.cache
def _kubectl() -> str | None:
    return shutil.which("kubectl") or shutil.which("kubectl", path=CACHE)


@pytest.mark.no_helm
def test_secrets_are_made_once(folder: Path) -> None:
    """A second run keeps them, only their owner reads them, and no two are the same."""
    first = _made(folder)

    assert _made(folder) == first
    assert first.keys() == {"redis-password", "dev-secret"}
    assert len(set(first.values())) == 2
    assert all(len(text) == 64 for text in first.values())
    assert all(path.stat().st_mode & 0o077 == 0 for path in (folder / "secrets").iterdir())
    assert "secrets" in (FOLDER / ".gitignore").read_text()


def test_one_apply_brings_what_the_chart_does(folder: Path) -> None:
    """Kustomize reads it: the chart's objects by kind and name, the secrets that its pods ask for, and a namespace."""
    kubectl = _kubectl()
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    secrets = _made(folder)

    told = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, timeout=50, check=False)

    assert told.returncode == 0, told.stderr
    plain = Rendered(told.stdout)
    chart = [found for found in render(name="relayrouter").objects if found["kind"] != "Pod"]
    assert _names(plain.objects) == _names(chart) | {("Namespace", "relayrouter")}
    assert {found["metadata"].get("namespace") for found in plain.objects} == {"relayrouter", None}
    kept = {key for found in plain.all("Secret") for key in found["data"]}
    assert kept == set(secrets)


def _names(objects: list[dict]) -> set[tuple[str, str]]:
    return {(found["kind"], found["metadata"]["name"]) for found in objects}


@pytest.mark.no_helm
def test_every_file_is_listed() -> None:
    """What is in the folder is applied."""
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in FOLDER.glob("*.yaml")}
