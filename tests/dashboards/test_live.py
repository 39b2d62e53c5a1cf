"""Every panel and every rule on a real Prometheus that scrapes two gateways under a small load."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from loadtest.stage import Stage
from tests.dashboards.programs import needs
from tests.dashboards.prometheus import LABELS, Prometheus
from tests.dashboards.small_load import small_load
from tools.dashboards.__main__ import ROOT
from tools.dashboards.alert import PREFIX, Alert
from tools.dashboards.alerts import ALERTS
from tools.dashboards.ask import ONLY_WITHOUT_GATEWAYS, Scope, has_data, questions
from tools.dashboards.boards import BOARDS
from tools.dashboards.panel import Panel

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

SCOPE = Scope(LABELS["namespace"], LABELS["app_kubernetes_io_instance"], window="20s")
HOLD_SECONDS = 40
"""For what takes some ten: the machine may be busy."""
PANELS = [(board.name, panel) for board in BOARDS for panel in board.panels]


@dataclass(frozen=True, slots=True)
class Scene:
    prometheus: Prometheus

    async def has_data(self, expr: str) -> bool:
        return has_data(await self.prometheus.query(SCOPE.fill(expr)))

    async def comes(self, *exprs: str) -> bool:
        """All of them have data in time: some need a run to end, or a round trip."""
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                for expr in exprs:
                    while not await self.has_data(expr):
                        await asyncio.sleep(0.5)
        except TimeoutError:
            return False
        return True


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    program, folder = needs("prometheus"), tmp_path_factory.mktemp("live")
    async with Stage(folder / "stage", 1) as stage:
        primary, replica = stage.server(), stage.server()
        replica.follow(primary)
        gateways = await stage.start_gateways(
            2,
            primary.url,
            append__min_replicas="1",
            admission__memory_limit_bytes="4 GiB",
            liveness__heartbeat_min_seconds="0.5",
            liveness__heartbeat_seconds="0.5",
            quotas__tenants='{"default": {}}',
        )
        prometheus = Prometheus(program, folder / "prometheus")
        try:
            await prometheus.start(gateways)
            async with small_load(stage, gateways):
                yield Scene(prometheus)
        finally:
            await prometheus.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prometheus]:
    """One gateway that was well, and whose Redis is gone."""
    program, folder = needs("prometheus"), tmp_path_factory.mktemp("outage")
    async with Stage(folder / "stage", 1) as stage:
        server = stage.server()
        prometheus = Prometheus(program, folder / "prometheus")
        try:
            await prometheus.start(await stage.start_gateways(1, server.url))
            async with asyncio.timeout(HOLD_SECONDS):
                while await prometheus.query("relayrouter_redis_up") != [1]:
                    await asyncio.sleep(0.2)
            server.kill()
            yield prometheus
        finally:
            await prometheus.end()


@pytest.mark.parametrize(("board", "panel"), PANELS, ids=[f"{name}-{panel.title}" for name, panel in PANELS])
async def test_a_panel_has_data(scene: Scene, board: str, panel: Panel) -> None:
    assert await scene.comes(*(query.expr for query in panel.queries)), board


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
async def test_what_an_alert_looks_at_has_a_value(scene: Scene, alert: Alert) -> None:
    """An expression without a value is an alert that never fires."""
    if alert.name in ONLY_WITHOUT_GATEWAYS:
        assert not await scene.has_data(alert.value)
    else:
        assert await scene.comes(alert.value)


async def asked(url: str, *more: str) -> tuple[int | None, dict[str, Any]]:
    """Exit status and report of the command."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tools.dashboards.ask", url, *more, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    async with asyncio.timeout(HOLD_SECONDS):
        output, _ = await process.communicate()
    return process.returncode, json.loads(output)


async def test_the_command_finds_all_of_it(scene: Scene) -> None:
    """For a Prometheus of one's own."""
    await scene.comes(*(expr for _, expr in questions()))

    status, report = await asked(scene.prometheus.url, "--namespace", LABELS["namespace"], "--window", "20s")

    assert (0, [], len(list(questions()))) == (status, report["missing"], report["asked"])


async def test_the_command_tells_what_has_no_data(scene: Scene) -> None:
    lacks = "overview: Gateways"
    status, report = await asked(scene.prometheus.url, "--namespace", "elsewhere", "--may-lack", lacks)

    assert 1 == status
    assert lacks in report["without_data"]
    assert lacks not in report["missing"]
    assert "redis: Up" in report["missing"]


async def test_every_rule_is_evaluated_without_an_error(scene: Scene) -> None:
    async with asyncio.timeout(HOLD_SECONDS):
        while any(rule["health"] == "unknown" for rule in await scene.prometheus.rules()):
            await asyncio.sleep(0.5)

    assert {(rule["health"], rule.get("lastError")) for rule in await scene.prometheus.rules()} == {("ok", None)}


async def test_an_outage_of_redis_is_one_alert(outage: Prometheus) -> None:
    """Seen at once; that it waits for its time is promtool's to judge."""
    async with asyncio.timeout(HOLD_SECONDS):
        while not await outage.query('ALERTS{alertname="RelayRouterRedisDown"}'):
            await asyncio.sleep(0.2)

    seen = {rule["name"] for rule in await outage.rules() if rule["state"] != "inactive"}
    assert {"RelayRouterRedisDown"} == seen


async def test_where_all_is_well_nothing_is_reported_at_once(scene: Scene) -> None:
    """Alerts that wait for nothing would be noise if any ordinary traffic set them off."""
    at_once = {f"{PREFIX}{alert.name}" for alert in ALERTS if not alert.for_}

    firing = {rule["name"] for rule in await scene.prometheus.rules() if rule["state"] == "firing"}

    assert not firing & at_once
