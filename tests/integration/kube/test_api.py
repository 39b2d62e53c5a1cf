"""The adapter against an API server on a socket: lists, watches, patches, and each way in which they fail."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.adapters.kube import KubePods
from gateway.domain.pods.endpoints import PodEndpoint, Slice, Standing
from gateway.ports.pods import AwayReason, Bookmark, Expired, PodsAway, SliceChange, SlicePut, SliceRemoved
from gateway.settings import ClusterSettings
from tests.integration.kube.scripted_api import NAMESPACE, SERVICE, ScriptedApi, endpoint

WAIT_SECONDS = 10.0


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    api = await ScriptedApi().start()
    yield api
    await api.end()


@pytest.fixture
async def pods(api: ScriptedApi, tmp_path: Path) -> AsyncIterator[KubePods]:
    settings = ClusterSettings(
        kubernetes=True, service=SERVICE, namespace=NAMESPACE, kubeconfig=api.kubeconfig(tmp_path)
    )
    pods = KubePods(settings, "relay-0", silent_seconds=WAIT_SECONDS)
    yield pods
    await pods.close()


async def following(changes: AsyncIterator[SliceChange]) -> SliceChange:
    async with asyncio.timeout(WAIT_SECONDS):
        return await anext(changes)


def slice_with(standing: Standing, name: str = "relay-a") -> Slice:
    return Slice(name, (PodEndpoint("relay-0", "u0", standing),))


async def test_what_happens_after_a_list_is_watched(api: ScriptedApi, pods: KubePods) -> None:
    await api.put(endpoint("relay-0", uid="u0", ready=True))
    listing = await pods.endpoints()
    async with pods.watch(listing.version, 60) as changes:
        await api.put(endpoint("relay-0", uid="u0", ready=False, terminating=True))
        await api.bookmark()
        await api.remove()
        told = [await following(changes) for _ in range(3)]

    assert (slice_with(Standing.READY),) == listing.slices
    assert [
        SlicePut(slice_with(Standing.TERMINATING), "1002"),
        Bookmark("1003"),
        SliceRemoved("relay-a", "1004"),
    ] == told


async def test_a_slice_of_a_thousand_pods_is_one_event(api: ScriptedApi, pods: KubePods) -> None:
    """A line of a watch is as long as its object."""
    async with pods.watch("1000", 60) as changes:
        await api.put(*(endpoint(f"relay-{n}", uid=f"{n}" * 36, ready=True) for n in range(1_000)))
        change = await following(changes)

    assert isinstance(change, SlicePut)
    assert 1_000 == len(change.slice.endpoints)


async def test_a_version_that_is_compacted_is_expired_when_the_watch_begins(api: ScriptedApi, pods: KubePods) -> None:
    await api.compact()

    with pytest.raises(Expired):
        async with pods.watch("1000", 60):
            pass


async def test_a_version_that_is_compacted_is_expired_in_the_middle_of_a_watch(
    api: ScriptedApi, pods: KubePods
) -> None:
    async with pods.watch("1000", 60) as changes:
        await api.compact()

        with pytest.raises(Expired):
            await following(changes)


async def test_a_watch_whose_time_is_over_just_ends(api: ScriptedApi, pods: KubePods) -> None:
    async with pods.watch("1000", 60) as changes:
        await api.end_watches()

        with pytest.raises(StopAsyncIteration):
            await following(changes)


async def test_a_watch_that_breaks_in_the_middle_of_a_line_is_unreachable(api: ScriptedApi, pods: KubePods) -> None:
    async def watch() -> None:
        async with pods.watch("1000", 60) as changes:
            api.break_watches()
            await following(changes)

    with pytest.raises(PodsAway, match="unreachable"):
        await watch()


async def test_a_silent_watch_is_given_up(api: ScriptedApi, tmp_path: Path) -> None:
    settings = ClusterSettings(
        kubernetes=True, service=SERVICE, namespace=NAMESPACE, kubeconfig=api.kubeconfig(tmp_path)
    )
    pods = KubePods(settings, "relay-0", silent_seconds=0.05)
    try:
        with pytest.raises(PodsAway, match="unreachable"):
            async with pods.watch("1000", 60) as changes:
                await following(changes)
    finally:
        await pods.close()


@pytest.mark.parametrize("what", ["list", "watch", "patch"])
async def test_what_the_role_lacks_is_forbidden_and_named(what: str, api: ScriptedApi, pods: KubePods) -> None:
    api.forbidden = {what}

    async def ask() -> None:
        match what:
            case "list":
                await pods.endpoints()
            case "watch":
                async with pods.watch("1000", 60):
                    pass
            case _:
                await pods.set_deletion_cost(3)

    with pytest.raises(PodsAway) as caught:
        await ask()

    assert AwayReason.FORBIDDEN is caught.value.reason
    assert f"cannot {what}" in caught.value.detail


async def test_the_cost_is_an_annotation_of_the_own_pod_and_nothing_else_changes(
    api: ScriptedApi, pods: KubePods
) -> None:
    await pods.set_deletion_cost(300_007)

    annotations = {"controller.kubernetes.io/pod-deletion-cost": "300007"}
    assert [("relay-0", {"metadata": {"annotations": annotations}})] == api.patches


async def test_a_server_that_is_away_is_unreachable_until_it_is_back(api: ScriptedApi, pods: KubePods) -> None:
    await pods.endpoints()
    await api.stop()
    with pytest.raises(PodsAway, match="unreachable"):
        await pods.endpoints()
    await api.start()

    assert () == (await pods.endpoints()).slices


async def test_what_the_package_stumbles_over_ends_no_gateway(api: ScriptedApi, tmp_path: Path) -> None:
    """A token with a line break is no header."""
    file = api.kubeconfig(tmp_path, token="t\r\nx")
    pods = KubePods(ClusterSettings(kubernetes=True, service=SERVICE, namespace=NAMESPACE, kubeconfig=file), "relay-0")
    try:
        with pytest.raises(PodsAway, match="malformed"):
            await pods.endpoints()
    finally:
        await pods.close()


@pytest.mark.parametrize("content", [None, "", "{", "clusters: []"])
async def test_without_an_account_nothing_can_be_asked(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    pods = KubePods(ClusterSettings(kubernetes=True, service=SERVICE, kubeconfig=file), "relay-0")

    with pytest.raises(PodsAway, match="no_account"):
        await pods.endpoints()


async def test_outside_a_cluster_there_is_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    pods = KubePods(ClusterSettings(kubernetes=True, service=SERVICE), "relay-0")

    with pytest.raises(PodsAway, match="no_account"):
        await pods.set_deletion_cost(0)
