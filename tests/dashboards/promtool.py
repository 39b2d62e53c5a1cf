"""All cases of the rules in one run of promtool: by itself each would cost half a second. Called by test_rules."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.dashboards.cases import Case
from tools.dashboards.__main__ import CHART
from tools.dashboards.alert import PREFIX

RULES = CHART / "rules" / "alerts.yaml"
SCOPE = 'namespace="n",app_kubernetes_io_instance="r",pod="p"'
END = "50m"
SAMPLES_SECONDS = 15
RUN_SECONDS = 50
_VERDICT = re.compile(r"^  (?:SUCCESS|FAILED:)$.*?(?=^  SUCCESS|^  FAILED:|^Unit Testing|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Trial:
    """How many of each alert fire at a time, with this value in the case's series."""

    case: Case
    value: str
    at: str
    firing: Mapping[str, int]

    def body(self, rules: Path) -> dict[str, Any]:
        series = [
            {"series": _scoped(name), "values": values.replace("{}", self.value)}
            for name, values in self.case.series.items()
        ]
        asked = [
            {
                "expr": f'count(ALERTS{{alertname="{PREFIX}{alert}",alertstate="firing"}})',
                "eval_time": self.at,
                "exp_samples": [{"labels": "{}", "value": count}] if count else [],
            }
            for alert, count in self.firing.items()
        ]
        step = f"{SAMPLES_SECONDS}s"
        return {
            "rule_files": [str(rules)],
            "evaluation_interval": step,
            "tests": [{"interval": step, "input_series": series, "promql_expr_test": asked}],
        }


def judge(promtool: Path, folder: Path, trials: Mapping[str, Trial]) -> dict[str, str]:
    """What promtool says is wrong with each; empty: all is as expected. Each sees only the rules that it asks for."""
    files = []
    for number, trial in enumerate(trials.values()):
        rules, path = folder / f"rules-{number}.yaml", folder / f"trial-{number}.yaml"
        rules.write_text(yaml.safe_dump(_only(set(trial.firing))), encoding="utf-8")
        path.write_text(yaml.safe_dump(trial.body(rules)), encoding="utf-8")
        files.append(path)
    done = subprocess.run(
        [promtool, "test", "rules", *files],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECONDS,
    )
    # One after the other in the order of the files; promtool 2 names each before it, promtool 3 does not.
    told = _VERDICT.findall(done.stdout)
    assert len(told) == len(files), done.stdout
    return {name: "" if verdict.strip() == "SUCCESS" else verdict for name, verdict in zip(trials, told, strict=True)}


def _only(alerts: set[str]) -> dict[str, Any]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"] if rule["alert"].removeprefix(PREFIX) in alerts]
    return {"groups": [{"name": "asked", "rules": rules}]}


def _scoped(name: str) -> str:
    metric, _, labels = name.partition("{")
    return f"relayrouter_{metric}{{{labels.rstrip('}')}{',' if labels else ''}{SCOPE}}}"


__all__ = ["END", "RULES", "SAMPLES_SECONDS", "Trial", "judge"]
