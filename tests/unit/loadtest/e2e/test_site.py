"""Reading what Kubernetes tells, merging values, and the edge's configuration. No cluster is needed."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtest.e2e.edge import configuration
from loadtest.e2e.images import Release, fingerprint, forget_oldest
from loadtest.e2e.site import Pod, merged


def item(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "node1", "containers": [{"image": "i:1"}]},
        "status": status,
    }


def test_pod_without_an_address_yet_is_read() -> None:
    """A pod that was just made has almost no status."""
    assert Pod("p", "", "node1", is_ready=False, is_terminating=False, restarts=0, image="i:1") == Pod.read(item())


def test_ready_pod_that_was_restarted_is_read() -> None:
    """Its address, its condition and how often."""
    told = item(
        podIP="198.18.1.2",
        conditions=[{"type": "Ready", "status": "True"}],
        containerStatuses=[{"restartCount": 2}, {"restartCount": 1}],
    )

    pod = Pod.read(told)

    assert (pod.is_ready, pod.restarts, pod.admin_url) == (True, 3, "http://198.18.1.2:9090")


def test_values_are_merged_by_key_and_lists_replaced() -> None:
    """As Helm does it; neither side is changed."""
    under = {"a": {"x": 1, "y": [1, 2]}, "b": 1}

    assert {"a": {"x": 1, "y": [3]}, "b": {"z": 1}} == merged(under, {"a": {"y": [3]}, "b": {"z": 1}})
    assert {"a": {"x": 1, "y": [1, 2]}, "b": 1} == under


def test_edge_has_one_endpoint_by_the_name_of_all_pods() -> None:
    """All else of the published configuration stays."""
    made = yaml.safe_load(configuration("all-pods"))

    cluster = made["static_resources"]["clusters"][0]
    endpoints = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [{"address": "all-pods", "port_value": 8080}] == [
        one["endpoint"]["address"]["socket_address"] for one in endpoints
    ]
    assert {"port_value": 9090} == endpoints[0]["endpoint"]["health_check_config"]
    assert "STRICT_DNS" == cluster["type"]


def test_recorded_release_is_a_whole_commit() -> None:
    """An abbreviated one could become ambiguous."""
    release = Release.read()

    assert 40 == len(release.commit)
    assert release.image.endswith(f":{release.version}")


@pytest.mark.parametrize("change", ["content", "name"])
def test_fingerprint_sees_every_change(change: str, tmp_path: Any) -> None:
    """An image of another tree is another one."""
    part = tmp_path / "part"
    part.mkdir()
    (part / "a.py").write_text("one", encoding="utf-8")
    before = fingerprint(tmp_path, ["part"])

    if change == "content":
        (part / "a.py").write_text("two", encoding="utf-8")
    else:
        (part / "a.py").rename(part / "b.py")

    assert before != fingerprint(tmp_path, ["part"])


def test_oldest_archives_are_forgotten(tmp_path: Path) -> None:
    """The newest stay, and what is no gateway's."""
    for age, name in enumerate(["gateway-c.tar", "gateway-b.tar", "gateway-a.tar", "redis.tar"]):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1_000 - age, 1_000 - age))

    forget_oldest(tmp_path, 2)

    assert {"gateway-c.tar", "gateway-b.tar", "redis.tar"} == {file.name for file in tmp_path.iterdir()}
