"""Passwords that the chart makes are made once: Helm, with an API server that it may look into, finds them again."""

import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart.api_server import Object, Secrets, serving
from tests.chart.conftest import HELMS, Refused, Rendered
from tools.chart.values_file import CHART

RELEASE = "relay"
NAMES = {"relay-relayrouter-valkey": "redis-password", "relay-relayrouter-dev-key": "dev-secret"}


@pytest.fixture
def cluster() -> Iterator[Secrets]:
    with serving() as secrets:
        yield secrets


@pytest.fixture(params=["3", "4"])
def helm(request: pytest.FixtureRequest) -> str:
    if request.param not in HELMS:
        pytest.skip(f"no Helm {request.param}: `python tools/helm.py install`")
    return str(request.param)


def _upgrade(cluster: Secrets, helm: str, values: dict[str, Any] | None = None, namespace: str = "chat") -> Rendered:
    """What an upgrade would apply, which is then applied. Raises Refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, tempfile.NamedTemporaryFile("w") as empty:
        yaml.safe_dump(values or {}, file)
        file.flush()
        command = [HELMS[helm], "template", RELEASE, CHART, "--dry-run=server", "--namespace", namespace]
        api = ["--kube-apiserver", cluster.url, "--kubeconfig", empty.name, "--disable-openapi-validation"]
        command += [*api, "--values", file.name]
        told = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    if told.returncode:
        raise Refused(told.stderr)
    rendered = Rendered(told.stdout)
    cluster.apply(rendered.objects, RELEASE)
    return rendered


def _passwords(rendered: Rendered) -> dict[str, str]:
    return {
        secret["metadata"]["name"]: secret["data"][NAMES[secret["metadata"]["name"]]]
        for secret in rendered.all("Secret")
    }


def test_an_upgrade_keeps_them(cluster: Secrets, helm: str) -> None:
    """Whatever else changes, the second rendering has the first one's password and key."""
    first = _passwords(_upgrade(cluster, helm))

    second = _passwords(_upgrade(cluster, helm, {"replicas": 3, "config": {"retention": {"ttl_seconds": 900}}}))

    assert first.keys() == NAMES.keys()
    assert len(set(first.values())) == 2
    assert second == first
    assert set(cluster.asked) == {f"chat/{name}" for name in NAMES}


def test_another_release_has_its_own(cluster: Secrets, helm: str) -> None:
    """Nothing is taken from another namespace; and each is made anew, so that the test above can fail."""
    there = _passwords(_upgrade(cluster, helm, namespace="elsewhere"))

    here = _passwords(_upgrade(cluster, helm))

    assert not set(there.values()) & set(here.values())


def test_a_secret_without_its_entry_is_not_overwritten(cluster: Secrets, helm: str) -> None:
    """Somebody changed it: the upgrade stops and says what to do, and writes no password that Valkey does not have."""
    foreign: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "relay-relayrouter-valkey", "namespace": "chat"},
        "data": {"other": "eA=="},
    }
    cluster.apply([foreign], RELEASE)

    with pytest.raises(Refused, match="relay-relayrouter-valkey has no entry redis-password; add it, or delete"):
        _upgrade(cluster, helm)


def test_a_secret_of_ones_own_is_not_looked_for(cluster: Secrets, helm: str) -> None:
    """With `existingSecret` the chart makes none and reads none: it need not have the right to."""
    own = {"valkey": {"auth": {"existingSecret": "mine"}}, "auth": {"existingDevSecret": "mine-too"}}

    rendered = _upgrade(cluster, helm, own)

    assert (rendered.all("Secret"), cluster.asked) == ([], [])
