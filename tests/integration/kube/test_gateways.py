"""Real gateways beside a scripted API server: the end of their pod, who is preferred, their cost, going without."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import SHORT_TIMES, Stage
from tests.integration.kube.scripted_api import NAMESPACE, SERVICE, ScriptedApi, endpoint

WAIT_SECONDS = 20.0


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    api = await ScriptedApi().start()
    yield api
    await api.end()


async def until(holds: Callable[[], Awaitable[bool]], *told: Gateway) -> None:
    """`told`: their logs belong to the failure."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not await holds():
        assert time.monotonic() < deadline, [gateway.log() for gateway in told]
        await asyncio.sleep(0.05)


async def start(stage: Stage, redis_url: str, api: ScriptedApi, pod: str, **settings: Any) -> Gateway:
    told = {
        "cluster__kubernetes": "true",
        "cluster__service": SERVICE,
        "cluster__namespace": NAMESPACE,
        "cluster__pod_name": pod,
        "cluster__kubeconfig": str(api.kubeconfig(stage.folder)),
        "cluster__deletion_cost_seconds": "1",
    }
    environ = {f"RR_{key.upper()}": value for key, value in {**told, **settings}.items()}
    gateway = Gateway(pod, redis_url, stage.folder / f"{pod}.log", {**SHORT_TIMES, **environ})
    stage.gateways.append(gateway)
    stage._stack.push_async_callback(gateway.end)
    return await gateway.start()


async def is_watched(api: ScriptedApi, count: int = 1) -> bool:
    return len(api.watches) >= count


async def test_the_end_of_the_pod_begins_the_drain_and_the_first_sigterm_hurries_nothing(
    stage: Stage, api: ScriptedApi
) -> None:
    await api.put(endpoint("relay-0", uid="u0", ready=True))
    gateway = await start(stage, stage.server().url, api, "relay-0", cluster__pod_uid="u0", drain__settle_seconds="1.5")
    await until(lambda: is_watched(api))
    await api.put(endpoint("relay-0", uid="u0", ready=False, serving=True, terminating=True))

    async def is_draining() -> bool:
        return 503 == (await gateway.admin("/readyz")).status

    await until(is_draining)
    gateway.terminate()

    assert 0 == await gateway.wait(WAIT_SECONDS)
    events = [json.loads(line)["event"] for line in gateway.log().splitlines() if line.startswith("{")]
    assert "own_endpoint_terminating" in events
    assert "drain_ended" in events
    assert "drain_hurried" not in events


async def test_a_pod_that_is_not_ready_is_preferred_by_nobody_whatever_becomes_of_watches(
    stage: Stage, api: ScriptedApi
) -> None:
    redis_url = stage.server().url
    await api.put(endpoint("relay-0", ready=True), endpoint("relay-1", ready=False))
    a, b = await asyncio.gather(*(start(stage, redis_url, api, f"relay-{n}") for n in range(2)))

    async def are_preferred(wanted: set[str], *by: Gateway) -> bool:
        asked = [(one.url, f"/v1/where/s{n}") for one in by for n in range(8)]
        answers = [await ask_once(url, "GET", path, timeout_seconds=5) for url, path in asked]
        return {answer.json()["gateway"] for answer in answers} == wanted

    await until(lambda: are_preferred({a.ident}, a, b))
    await api.compact()  # every watch begins anew, with a list
    await api.put(endpoint("relay-0", ready=True), endpoint("relay-1", ready=True))
    await until(lambda: are_preferred({a.ident, b.ident}, a, b))
    api.break_watches()
    await api.put(endpoint("relay-0", ready=True, terminating=True), endpoint("relay-1", ready=True))
    await until(lambda: are_preferred({b.ident}, b))


async def test_an_open_connection_raises_the_cost(stage: Stage, api: ScriptedApi) -> None:
    gateway = await start(stage, stage.server().url, api, "relay-0")

    async def is_cost(least: int, below: int) -> bool:
        told = [int(*patch["metadata"]["annotations"].values()) for _, patch in api.patches]
        return bool(told) and least <= told[-1] < below

    await until(lambda: is_cost(0, 1))
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{gateway.url}/v1/sessions/s/ws?client=c1"):
        await until(lambda: is_cost(1, 2))


@pytest.mark.parametrize("is_up", [True, False], ids=["forbidden", "away"])
async def test_without_what_it_needs_a_gateway_serves_says_so_once_and_counts(
    stage: Stage, api: ScriptedApi, is_up: bool
) -> None:
    api.forbidden = {"list", "watch", "patch"}
    if not is_up:
        await api.stop()
    gateway = await start(stage, stage.server().url, api, "relay-0")
    reason = "forbidden" if is_up else "unreachable"

    async def have_both_failed() -> bool:
        return {"endpoints", "pod deletion cost"} <= {line["what"] for line in warnings()}

    def warnings() -> list[dict[str, str]]:
        return [json.loads(line) for line in gateway.log().splitlines() if '"kubernetes_away"' in line]

    async def has_it_counted_three() -> bool:
        return 3 <= await gateway.metric("kubernetes_errors_total", reason=reason)

    await until(have_both_failed, gateway)
    await until(has_it_counted_three, gateway)
    where = await ask_once(gateway.url, "GET", "/v1/where/s", timeout_seconds=5)

    assert 200 == (await gateway.admin("/readyz")).status
    assert gateway.ident == where.json()["gateway"]
    assert 1 == await gateway.metric("kubernetes_away")
    assert 1 <= await gateway.metric("pod_deletion_costs_total", outcome="failed")
    assert ["endpoints", "pod deletion cost"] == sorted(line["what"] for line in warnings())
    assert {reason} == {line["reason"] for line in warnings()}
