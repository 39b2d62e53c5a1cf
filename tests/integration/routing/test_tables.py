"""The table of running gateways: swapped by a ConfigMap's link, kept when the new one is wrong, tried, decided on."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.domain.routing.table import MessageType
from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.routing.route_stage import Routed, report, routed, until, until_in_force, write

pytestmark = pytest.mark.asyncio(loop_scope="module")

TRIED = "routes: {model_text: {summary: {channel: queue}}}"


def canary(share: str, version: str = "next", more: str = "") -> str:
    return f"canary: {{version: {version}, share: {share}, {TRIED}{more}}}\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(shared_stage: Stage) -> AsyncIterator[Routed]:
    async with routed(shared_stage, gateways=2) as it:
        yield it


async def routes_command(gateway: Gateway, *words: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "routes", *words, "--admin-url", gateway.admin_url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={**os.environ, "RR_TOKEN": ""},
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode or 0, out.decode()


async def table_of(gateway: Gateway, session: str) -> str:
    answer = await ask_once(
        gateway.admin_url, "GET", f"/admin/routes/explain?type=model_text&kind=summary&session={session}"
    )
    return str(answer.json()["table"])


async def test_a_configmap_is_taken_when_its_data_link_is_swapped(shared_stage: Stage) -> None:
    mount = shared_stage.folder / "configmap"
    data = publish(mount, "1", "version: one\nroutes: {}\n")
    (mount / "routes.yaml").symlink_to(Path("..data") / "routes.yaml")
    gateway = await shared_stage.gateway(
        shared_stage.server().url, routing__file=str(mount / "routes.yaml"), routing__poll_seconds="0.05"
    )
    before = await report(gateway)

    publish(mount, "2", "version: two\nroutes: {control: {'*': {lane: low}}}\n")
    after = await until_in_force(gateway, "two")

    assert ("one", "highest") == (before["in_force"], before["current"]["routes"]["control"]["*"]["lane"])
    assert "low" == after["current"]["routes"]["control"]["*"]["lane"]
    assert "configmap-2" == data.resolve().name
    assert 1 == await gateway.metric("route_reloads_total", outcome="taken")


def publish(mount: Path, number: str, text: str) -> Path:
    """As the kubelet does it: a folder of its own, then `..data` is renamed over."""
    folder = mount.parent / f"configmap-{number}"
    folder.mkdir(parents=True)
    mount.mkdir(exist_ok=True)
    (folder / "routes.yaml").write_text(text)
    fresh = mount / "..data_tmp"
    fresh.symlink_to(folder)
    fresh.replace(mount / "..data")
    return mount / "..data"


async def test_a_wrong_table_leaves_the_one_before_in_force_and_says_so(pair: Routed) -> None:
    name = await pair.use("control: {'*': {lane: low}}")
    write(pair.path, "version: bad\nroutes:\n  model_text:\n    '*':\n      persistence: ephemeral\n  nonsense: {}\n")
    said = await until(pair.gateway, lambda said: said["problems"])
    shown, text = await routes_command(pair.gateway, "show")
    wrong = [
        await pair.gateway.metric("route_file_bad"),
        await pair.gateway.metric("route_reloads_total", outcome="refused"),
    ]
    pair.path.unlink()
    gone = await until(pair.gateway, lambda said: len(said["problems"]) == 1)
    write(pair.path, f"version: {name}\nroutes: {{control: {{'*': {{lane: low}}}}}}\n")
    await until(pair.gateway, lambda said: not said["problems"])

    assert name == said["in_force"] == gone["in_force"]
    assert "low" == said["current"]["routes"]["control"]["*"]["lane"]
    assert [
        f"{pair.path}:5: model_text.*: persistence of text cannot be switched off",
        f"{pair.path}:6: routes: unknown key `nonsense`; there are {', '.join(MessageType)}",
    ] == said["problems"]
    assert [f"{pair.path}: is not there"] == gone["problems"]
    assert [1, 1] == wrong
    assert 0 == await pair.gateway.metric("route_file_bad")
    assert "route_table_refused" in pair.gateway.log()
    assert (0, True) == (shown, "persistence of text cannot be switched off" in text)


async def test_a_canary_has_the_same_sessions_at_every_gateway(pair: Routed) -> None:
    await pair.use("", canary("50%", more=", tenants: [acme]"))
    sessions = [f"s{number}" for number in range(20)]

    here, there = [[await table_of(gateway, session) for session in sessions] for gateway in pair.gateways]

    assert here == there
    assert {"current", "canary"} == set(here)


async def test_promote_and_roll_back_hold_for_all_gateways_and_new_ones(pair: Routed, shared_stage: Stage) -> None:
    name = await pair.use("", canary("10%", "tried"))
    one, two = pair.gateways

    promoted, said = await routes_command(one, "promote")
    await until_in_force(two, "tried")
    environ = {"routing__file": str(pair.path), "routing__poll_seconds": "0.05"}
    later = await shared_stage.gateway(one.redis_url, **environ)
    await until_in_force(later, "tried")
    everybody = {await table_of(two, f"s{number}") for number in range(20)}
    back, _ = await routes_command(two, "rollback")
    for gateway in (one, two, later):
        await until_in_force(gateway, name)

    assert (0, 0, {"canary"}) == (promoted, back, everybody)
    assert "canary tried: promoted" in said


async def test_a_canary_that_was_changed_since_is_tried_anew(pair: Routed) -> None:
    name = await pair.use("", canary("100%", "tried2"))
    assert 0 == (await routes_command(pair.gateway, "rollback"))[0]
    await until_in_force(pair.gateways[1], name)

    changed = canary("100%", "tried2").replace("queue", "webhook, fallback: none")
    write(pair.path, f"version: {name}\nroutes: {{}}\n{changed}")

    await until_in_force(pair.gateways[1], f"{name}+tried2")


async def test_without_a_canary_there_is_nothing_to_decide(pair: Routed) -> None:
    await pair.use("")

    code, said = await routes_command(pair.gateway, "promote")

    assert (2, True) == (code, "has no canary" in said)


async def test_messages_are_counted_by_the_version_they_went_by(pair: Routed) -> None:
    name = await pair.use("", canary("50%", "counted"))
    tables = [await table_of(pair.gateway, f"c{number}") for number in range(20)]

    for number in range(20):
        await pair.push(f"c{number}", {"kind": "note"})

    assert tables.count("canary") == await pair.gateway.metric("routed_messages_total", version="counted")
    assert tables.count("current") == await pair.gateway.metric("routed_messages_total", version=name)
