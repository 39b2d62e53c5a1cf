"""Every panel and every rule on a real Prometheus that scrapes two gateways under a small load."""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from loadtest.stage import Stage
from tests.dashboards.programs import needs
from tests.dashboards.prometheus import LABELS, Prometheus
from tests.dashboards.small_load import small_load
from tools.dashboards.alert import PREFIX, Alert
from tools.dashboards.alerts import ALERTS
from tools.dashboards.boards import BOARDS
from tools.dashboards.panel import WINDOW, Panel

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

VARIABLES = {
    WINDOW: "20s",
    "$namespace": LABELS["namespace"],
    "$release": LABELS["app_kubernetes_io_instance"],
    "$pod": ".*",
}
HOLD_SECONDS = 40
"""For what takes some ten: the machine may be busy."""
PANELS = [(board.name, panel) for board in BOARDS for panel in board.panels]
WITHOUT_VALUE = {"Absent"}
"""It has one only while nothing is scraped."""


@dataclass(frozen=True, slots=True)
class Scene:
    prometheus: Prometheus

    async def has_data(self, expr: str) -> bool:
        """At least one series, and a number in each: no quantile of nothing."""
        for variable, value in VARIABLES.items():
            expr = expr.replace(variable, value)
        values = await self.prometheus.query(expr)
        return bool(values) and not any(math.isnan(value) for value in values)

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
    if alert.name in WITHOUT_VALUE:
        assert not await scene.has_data(alert.value)
    else:
        assert await scene.comes(alert.value)


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
