"""A real API server, ReplicaSet and kubelet: the least Role, endpoints that terminate, a scale-in that heeds the cost.

Runs where `kubectl` reaches a cluster that has the image named by RR_KUBE_IMAGE (any that sleeps); skipped elsewhere.
"""

import asyncio
import base64
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.kube import KubePods
from gateway.core.pods import PodWatch
from gateway.domain.measures import Measures
from gateway.domain.pods.endpoints import Standing
from gateway.ports.pods import AwayReason, Expired, PodsAway
from gateway.settings import ClusterSettings
from loadtest.stage import Stage

pytestmark = [pytest.mark.soak, pytest.mark.timeout(180)]

IMAGE = os.environ.get("RR_KUBE_IMAGE", "rr-cluster/pause:1")
NAMESPACE = "rr-kube-test"
WAIT_SECONDS = 60.0
PRE_STOP_SECONDS = 10
ROLE = [
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]},
]
"""As docs/kubernetes.md has it."""


def kubectl(*words: str, told: Any = None) -> str:
    done = subprocess.run(
        ["kubectl", *words],
        input=None if told is None else json.dumps(told),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def reaches_a_cluster() -> bool:
    if shutil.which("kubectl") is None or not os.environ.get("KUBECONFIG"):
        return False
    asked = ["kubectl", "get", "--raw", "/readyz", "--request-timeout=3s"]
    return 0 == subprocess.run(asked, capture_output=True, timeout=20, check=False).returncode


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two pods behind a Service, and an account that may do nothing yet."""
    if not reaches_a_cluster():
        pytest.skip("no Kubernetes cluster: KUBECONFIG and kubectl do not lead to one")
    labels = {"app": "relay"}
    container = {
        "name": "c",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_SECONDS}}},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 20}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true")
    items = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _named("v1", "ServiceAccount", "relay"),
        _named("apps/v1", "Deployment", "relay", spec=spec),
        _named("v1", "Service", "relay", spec={"selector": labels, "ports": [{"port": 80}]}),
    ]
    kubectl("apply", "-f", "-", told={"apiVersion": "v1", "kind": "List", "items": items})
    kubectl("-n", NAMESPACE, "rollout", "status", "deployment/relay", "--timeout=50s")
    yield
    kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def _named(version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **rest}


def allow() -> None:
    subject = {"kind": "ServiceAccount", "name": "relay", "namespace": NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "relay"}
    items = [
        _named("rbac.authorization.k8s.io/v1", "Role", "relay", rules=ROLE),
        _named("rbac.authorization.k8s.io/v1", "RoleBinding", "relay", subjects=[subject], roleRef=role),
    ]
    kubectl("apply", "-f", "-", told={"apiVersion": "v1", "kind": "List", "items": items})


@pytest.fixture
def account(cluster: None, tmp_path: Path) -> Path:
    """A kubeconfig of the pods' own account, with a token as a pod has one."""
    admin = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    server = admin["clusters"][0]["cluster"]
    if "certificate-authority" in server:
        data = Path(server.pop("certificate-authority")).read_bytes()
        server["certificate-authority-data"] = base64.b64encode(data).decode()
    token = kubectl("-n", NAMESPACE, "create", "token", "relay").strip()
    told = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps(told), encoding="utf-8")
    return file


def pods_now() -> dict[str, str]:
    """Name to uid, without those that go away."""
    found = json.loads(kubectl("-n", NAMESPACE, "get", "pods", "-o", "json"))["items"]
    return {
        one["metadata"]["name"]: one["metadata"]["uid"] for one in found if "deletionTimestamp" not in one["metadata"]
    }


@asynccontextmanager
async def asking(account: Path, pod: str) -> AsyncIterator[KubePods]:
    pods = KubePods(ClusterSettings(kubernetes=True, service="relay", namespace=NAMESPACE, kubeconfig=account), pod)
    try:
        yield pods
    finally:
        await pods.close()


async def until_allowed(pods: KubePods) -> None:
    """Authorisation is cached for a moment."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            await pods.endpoints()
        except PodsAway:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
        else:
            return


async def test_without_a_role_everything_is_forbidden_and_named(account: Path) -> None:
    """First in this file: the account gets its Role later."""
    reasons = []
    async with asking(account, next(iter(pods_now()))) as pods:
        for call in (pods.endpoints, lambda: pods.set_deletion_cost(1)):
            with pytest.raises(PodsAway, match=r"cannot (list|patch)") as caught:
                await call()
            reasons.append(caught.value.reason)

    assert [AwayReason.FORBIDDEN] * 2 == reasons


async def test_the_least_role_is_enough(account: Path) -> None:
    allow()
    async with asking(account, next(iter(pods_now()))) as pods:
        await until_allowed(pods)
        listing = await pods.endpoints()
        async with pods.watch(listing.version, 60):
            pass
        await pods.set_deletion_cost(7)

    ready = {one.pod for part in listing.slices for one in part.endpoints if one.standing is Standing.READY}
    assert set(pods_now()) == ready


async def test_a_scale_in_takes_the_pod_that_costs_least(account: Path) -> None:
    allow()
    names = sorted(pods_now())
    costs = dict(zip(names, (200_003, 1, 100_000), strict=True))
    for name, cost in costs.items():
        async with asking(account, name) as pods:
            await until_allowed(pods)
            await pods.set_deletion_cost(cost)
    kubectl("-n", NAMESPACE, "scale", "deployment/relay", "--replicas=2")
    deadline = time.monotonic() + WAIT_SECONDS
    while len(pods_now()) > 2:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)

    assert {names[0], names[2]} == set(pods_now())


async def test_the_end_of_the_own_pod_is_known_while_it_still_runs(account: Path) -> None:
    allow()
    name, uid = next(iter(pods_now().items()))
    is_told = asyncio.Event()
    async with asking(account, name) as pods:
        await until_allowed(pods)
        watch = PodWatch(
            pods,
            Measures(),
            pod=name,
            uid=uid,
            clock=time.monotonic,
            rng=random.Random(7),
            on_terminating=is_told.set,
        )
        running = asyncio.get_running_loop().create_task(watch.run())
        try:
            while not watch.counts():
                await asyncio.sleep(0.05)
            kubectl("-n", NAMESPACE, "delete", "pod", name, "--wait=false")
            async with asyncio.timeout(PRE_STOP_SECONDS):
                await is_told.wait()
        finally:
            running.cancel()
            await asyncio.wait([running])

    found = json.loads(kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "json"))
    assert "running" in found["status"]["containerStatuses"][0]["state"]


def api_server() -> int:
    """Its process, where it runs in our own network: as it does for the cluster of one machine."""
    ours = Path("/proc/self/ns/net").readlink()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "ns/net").readlink() == ours and b"kube-apiserver" in (process / "cmdline").read_bytes():
                return int(process.name)
    pytest.skip("the API server is no process that can be killed here")


async def test_a_watch_outlives_its_api_server_and_what_that_forgot_is_expired(account: Path) -> None:
    allow()
    server = api_server()
    async with asking(account, next(iter(pods_now()))) as pods:
        await until_allowed(pods)
        watch = PodWatch(
            pods, Measures(), pod="-", uid="-", clock=time.monotonic, rng=random.Random(7), on_terminating=print
        )
        running = asyncio.get_running_loop().create_task(watch.run())
        try:
            os.kill(server, signal.SIGKILL)
            await asyncio.sleep(0.5)
            await until_allowed(pods)
            kubectl("-n", NAMESPACE, "scale", "deployment/relay", "--replicas=4")
            async with asyncio.timeout(WAIT_SECONDS):
                while watch.counts().get("ready") != 4:
                    await asyncio.sleep(0.1)
        finally:
            running.cancel()
            await asyncio.wait([running])

        # The new one knows what it read when it began, and nothing before.
        with pytest.raises(Expired):
            async with pods.watch("1", 60) as changes:
                await anext(changes)


async def test_a_gateway_drains_and_ends_with_its_pod_before_any_signal(account: Path, stage: Stage) -> None:
    allow()
    name, uid = next(iter(pods_now().items()))
    gateway = await stage.gateway(
        stage.server().url,
        cluster__kubernetes="true",
        cluster__service="relay",
        cluster__namespace=NAMESPACE,
        cluster__pod_name=name,
        cluster__pod_uid=uid,
        cluster__kubeconfig=str(account),
        cluster__deletion_cost_seconds="1",
    )
    deadline = time.monotonic() + WAIT_SECONDS
    while not await gateway.metric("pod_deletion_costs_total", outcome="written"):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    is_away = await gateway.metric("kubernetes_away")
    ready = await gateway.metric("endpoints", state="ready")
    kubectl("-n", NAMESPACE, "delete", "pod", name, "--wait=false")

    assert 0 == await gateway.wait(WAIT_SECONDS)
    assert (0, 4) == (is_away, ready)
