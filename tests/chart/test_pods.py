"""Pods, their rights, their secrets, what restarts them (H03, H05, B-level details of the restricted profile)."""

from typing import Any

import pytest

from tests.chart.conftest import render, tree
from tests.chart.value_sets import BROUGHT, SETS

VOLUMES = {"configMap", "emptyDir", "projected", "secret"}
"""All that the profile allows and this chart uses."""
OF_THE_USER = {"side"}
"""Containers that a set of values brings along."""


def _template(values: dict[str, Any]) -> Any:
    return render(values).one("Deployment")["spec"]["template"]


@pytest.mark.parametrize(
    "values", [tree("config.retention.ttl_seconds", 900), tree("drain.windowSeconds", 60), BROUGHT], ids=str
)
def test_a_new_setting_is_a_new_pod(values: dict[str, Any]) -> None:
    """The pod template changes with whatever becomes a setting."""
    assert _template(values)["metadata"]["annotations"] != _template({})["metadata"]["annotations"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        tree("service.type", "NodePort"),
        tree("autoscaling.enabled", True),
        tree("metrics.podMonitor.enabled", True),
        tree("replicas", 5),
    ],
    ids=str,
)
def test_what_is_no_setting_restarts_nobody(values: dict[str, Any]) -> None:
    """The pod template stays the same, also from one rendering to the next."""
    render.__globals__["_render"].cache_clear()
    assert _template(values) == _template(SETS["defaults"])


def test_route_table_is_taken_without_a_restart() -> None:
    """Another row changes the ConfigMap and not the pods; it is mounted as a folder, or no change would arrive."""
    first, second = (
        {"routeTable": {"data": {"routes": {"user_text": {"order": {"channel": channel}}}}}}
        for channel in ("queue", "webhook")
    )
    assert _template(first) == _template(second)
    assert render(first).one("ConfigMap", "relay-relayrouter-routes") != render(second).one(
        "ConfigMap", "relay-relayrouter-routes"
    )
    mount = next(mount for mount in render(first).gateway["volumeMounts"] if mount["name"] == "routes")
    assert "subPath" not in mount
    assert render(first).config["routing"]["file"] == f"{mount['mountPath']}/routes.yaml"


def test_own_annotations_stand_beside_the_checksum() -> None:
    """PodAnnotations replace nothing."""
    annotations = _template({"podAnnotations": {"note": "yes"}})["metadata"]["annotations"]
    assert annotations["note"] == "yes"
    assert annotations["checksum/config"]


@pytest.mark.parametrize("name", SETS.keys())
def test_every_pod_fits_the_restricted_profile(name: str) -> None:
    """Numeric non-root user, read-only root, no capability, seccomp default: gateways, Valkey, the test's pod."""
    rendered = render(SETS[name])
    pods = [found["spec"]["template"]["spec"] for kind in ("Deployment", "StatefulSet") for found in rendered.all(kind)]
    pods += [found["spec"] for found in rendered.all("Pod")]
    assert pods
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
        assert VOLUMES >= {kind for volume in pod.get("volumes", ()) for kind in volume.keys() - {"name"}}
        for container in (found for found in pod["containers"] if found["name"] not in OF_THE_USER):
            context = container["securityContext"]
            assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
            assert not any("hostPort" in port for port in container.get("ports", ()))


def test_rights_are_the_least() -> None:
    """Endpoints are read and pods patched in the own namespace; without the Kubernetes part no right and no token."""
    rules = render().one("Role")["rules"]
    assert [(rule["resources"], rule["verbs"]) for rule in rules] == [
        (["endpointslices"], ["list", "watch"]),
        (["pods"], ["patch"]),
    ]
    without_cost = render(tree("kubernetes.podDeletionCost", False)).one("Role")["rules"]
    assert [rule["resources"] for rule in without_cost] == [["endpointslices"]]
    off = render(tree("kubernetes.enabled", False))
    assert (off.all("Role"), off.pod["automountServiceAccountToken"]) == ([], False)
    assert "ClusterRole" not in {found["kind"] for found in render().objects}


def test_no_secret_is_in_a_config_map() -> None:
    """Passwords and keys are files from Secrets, mounted where the settings say."""
    rendered = render(SETS["sentinel"])
    files = {rendered.config["redis"]["password_file"], rendered.config["redis"]["sentinel_password_file"]}
    files |= {key["file"] for key in rendered.config["auth"]["keys"]}
    files |= {receiver["secret_file"] for receiver in rendered.config["webhooks"]["receivers"]}
    assert rendered.config["webhooks"]["parallel"] == 4
    files |= {rendered.config["redis"][name] for name in ("tls_ca_file", "tls_certificate_file", "tls_key_file")}
    volume = next(volume for volume in rendered.pod["volumes"] if volume["name"] == "secrets")
    mount = next(mount for mount in rendered.gateway["volumeMounts"] if mount["name"] == "secrets")
    items = [item for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
    assert {f"{mount['mountPath']}/{item['path']}" for item in items} == files
    assert rendered.all("Secret") == []


def test_own_secrets_are_kept() -> None:
    """Neither uninstall takes what the chart made; a volume stays, too."""
    rendered = render()
    secrets = rendered.all("Secret")
    assert {found["metadata"]["name"] for found in secrets} == {"relay-relayrouter-valkey", "relay-relayrouter-dev-key"}
    assert all(found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for found in secrets)
    policy = rendered.one("StatefulSet")["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert policy == {"whenDeleted": "Retain", "whenScaled": "Retain"}


def test_valkey_goes_when_redis_is_brought() -> None:
    """With a Redis of one's own nothing of the small one is left."""
    rendered = render(BROUGHT)
    assert rendered.all("StatefulSet") == []
    assert not [found for found in rendered.objects if "valkey" in found["metadata"]["name"]]


def test_service_links_are_off() -> None:
    """A Service called `rr` would put RR_ variables into the pods."""
    assert render().pod["enableServiceLinks"] is False


def test_the_watermark_knows_the_limit() -> None:
    """With `limit` the gateway is told the container's limit of memory."""
    entry = next(
        entry for entry in render(SETS["scaled"]).gateway["env"] if entry["name"] == "RR_ADMISSION__MEMORY_LIMIT_BYTES"
    )
    assert entry["valueFrom"]["resourceFieldRef"] == {"containerName": "gateway", "resource": "limits.memory"}


def test_images_come_from_the_mirror() -> None:
    """global.imageRegistry is in front of all images, a digest wins over a tag, pull secrets add up."""
    rendered = render(SETS["own"])
    assert rendered.gateway["image"] == "mirror.internal/relayrouter/relayrouter@sha256:" + "a" * 64
    assert rendered.one("StatefulSet")["spec"]["template"]["spec"]["containers"][0]["image"].startswith(
        "mirror.internal/valkey"
    )
    assert rendered.pod["imagePullSecrets"] == [{"name": "theirs"}, {"name": "mine"}]


def test_pods_are_spread_over_nodes_whether_or_not_nodes_have_zones() -> None:
    """The scheduler leaves nodes that lack the label of one constraint out of all: zones must not be one."""
    pod = render().pod
    assert ["kubernetes.io/hostname"] == [found["topologyKey"] for found in pod["topologySpreadConstraints"]]
    wishes = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert ["topology.kubernetes.io/zone"] == [wish["podAffinityTerm"]["topologyKey"] for wish in wishes]


def test_a_spread_of_ones_own_is_all_there_is() -> None:
    """The chart adds no wish for zones to it."""
    pod = render(SETS["own"] | {"affinity": {}}).pod
    assert SETS["own"]["topologySpreadConstraints"] == pod["topologySpreadConstraints"]
    assert "affinity" not in pod
