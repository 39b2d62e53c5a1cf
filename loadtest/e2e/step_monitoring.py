"""Step 3, too: all that dashboards and alerts ask is asked of a Prometheus that scrapes the release under load.

A panel without data, or a rule that cannot be evaluated, is a defect of ours: both are generated from the same tables.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from loadtest.e2e.inside import Inside, ProcessEnded
from loadtest.e2e.place import Place
from loadtest.e2e.report import Row
from loadtest.e2e.site import CHART, Site
from loadtest.e2e.tool import Tool

PROMETHEUS: Final = "http://prometheus.monitoring.svc.cluster.local:9090"
RULES: Final = CHART / "rules" / "alerts.yaml"
STREAMS: Final = 60
DATA_SECONDS: Final = 180.0
"""Rates are those of a minute; some quantiles need a run to end, or a reader to come back."""
ASK_EVERY_SECONDS: Final = 10.0
RULES_SECONDS: Final = 60.0
VALUES: Final[dict[str, Any]] = {"config": {"quotas": {"tenants": {"default": {}}}}}
"""A tenant that is named has figures of its own."""
MAY_LACK: Final = {
    "connects: Age of the certificate": "TLS is off",
    "connects: Certificate ends in": "TLS is off",
    "redis: Time of a round": "append.min_replicas is off, as there is one Redis",
}
"""Panels, and why they may have no data here."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What Prometheus says of the rules in force."""

    count: int
    faulty: tuple[str, ...]
    firing: tuple[str, ...]

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Rules":
        """An answer of `/api/v1/rules`; what was not evaluated yet is faulty."""
        rules = [rule for group in told["data"]["groups"] for rule in group["rules"]]
        return cls(
            len(rules),
            tuple(sorted(rule["name"] for rule in rules if rule["health"] != "ok")),
            tuple(sorted(rule["name"] for rule in rules if rule.get("state") == "firing")),
        )


async def run(place: Place) -> list[Row]:
    tool = place.tool
    async with place.site("monitoring") as site:
        await site.install(VALUES)
        began = time.monotonic()
        await tool.prometheus_rules(RULES)
        token = await site.token("subscribe", "publish", "consume")
        words = ("loadtest.e2e.variety", "--url", await site.service_url())
        variety = Inside("variety", tool.inside(*words), {"E2E_TOKEN": token})
        await variety.start()
        try:
            async with site.load(min(STREAMS, place.streams)) as load:
                await load.settled()
                answers = await _answers(site)
                rules = await _rules(tool)
                if problem := (await variety.ask("problem"))["problem"]:
                    raise ProcessEnded(f"the load of all kinds: {problem}")
                account = await load.end()
        finally:
            await variety.end()
            await tool.prometheus_rules()
    account.seconds = time.monotonic() - began
    lacking = sorted(set(answers["without_data"]) - set(answers["missing"]))
    notes = [
        f"{answers['asked']} queries of dashboards and alerts",
        f"without data: {', '.join(answers['missing']) or 'none'}",
        *(f"allowed to lack it: {name} ({MAY_LACK[name]})" for name in lacking),
        f"{rules.count} rules evaluated, with errors: {', '.join(rules.faulty) or 'none'}",
        f"firing: {', '.join(rules.firing) or 'none'}",
    ]
    is_answered = not answers["missing"] and not rules.faulty and rules.count > 0
    return [account.row("dashboards and rules", "; ".join(notes), is_passed=account.is_calm and is_answered)]


async def _answers(site: Site) -> dict[str, Any]:
    """Of the last time it was asked: until nothing is missing, or the time is over."""
    allowed = [word for name in MAY_LACK for word in ("--may-lack", name)]
    scope = ["--namespace", site.namespace, "--release", site.release]
    command = [sys.executable, "-m", "tools.dashboards.ask", PROMETHEUS, *scope, *allowed]
    give_up = time.monotonic() + DATA_SECONDS
    while True:
        # Its exit status says what its output says better.
        answers: dict[str, Any] = json.loads(await site.tool.exec("sh", "-c", '"$@" || true', "sh", *command))
        if not answers["missing"] or time.monotonic() > give_up:
            return answers
        await asyncio.sleep(ASK_EVERY_SECONDS)


async def _rules(tool: Tool) -> Rules:
    code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"
    give_up = time.monotonic() + RULES_SECONDS
    while True:
        rules = Rules.read(json.loads(await tool.exec("python3", "-c", code, f"{PROMETHEUS}/api/v1/rules")))
        if not rules.faulty or time.monotonic() > give_up:
            return rules
        await asyncio.sleep(ASK_EVERY_SECONDS)


__all__ = ["MAY_LACK", "Rules", "run"]
