"""Each rule, judged by promtool: silent at its threshold, silent before its time, and firing beyond both."""

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.cases import CASES, Case
from tests.dashboards.programs import needs
from tools.dashboards.__main__ import CHART
from tools.dashboards.alert import PREFIX
from tools.dashboards.alerts import ALERTS

RULES = CHART / "rules" / "alerts.yaml"
SCOPE = 'namespace="n",app_kubernetes_io_instance="r",pod="p"'
END = "50m"
SAMPLES_SECONDS = 15
BY_NAME = {alert.name: alert for alert in ALERTS}
HELD = [case for case in CASES if BY_NAME[case.alert].for_]


@pytest.fixture(scope="module")
def promtool() -> Path:
    return needs("promtool")


def fires(alert: str, at: str, *, count: int) -> dict[str, Any]:
    """How many of it fire then."""
    samples = [{"labels": "{}", "value": count}] if count else []
    return {"expr": f'count(ALERTS{{alertname="{PREFIX}{alert}",alertstate="firing"}})', "eval_time": at,
            "exp_samples": samples}  # fmt: skip


def scoped(name: str) -> str:
    metric, _, labels = name.partition("{")
    return f"relayrouter_{metric}{{{labels.rstrip('}')}{',' if labels else ''}{SCOPE}}}"


def only(expected: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The rules that are asked for, as they are delivered: with all of them promtool takes a second a case."""
    asked = " ".join(one["expr"] for one in expected)
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"] if f'"{rule["alert"]}"' in asked]
    return {"groups": [{"name": "asked", "rules": rules}]}


def judged(promtool: Path, folder: Path, case: Case, value: str, *expected: dict[str, Any]) -> str:
    """What promtool says is wrong; empty: all is as expected."""
    series = [{"series": scoped(name), "values": values.replace("{}", value)} for name, values in case.series.items()]
    alone = folder / "rules.yaml"
    body = {
        "rule_files": [str(alone)],
        "evaluation_interval": f"{SAMPLES_SECONDS}s",
        "tests": [{"interval": f"{SAMPLES_SECONDS}s", "input_series": series, "promql_expr_test": list(expected)}],
    }
    alone.write_text(yaml.safe_dump(only(expected)), encoding="utf-8")
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    done = subprocess.run(
        [promtool, "test", "rules", str(path)], check=False, capture_output=True, text=True, timeout=50
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_file_is_valid(promtool: Path) -> None:
    done = subprocess.run(
        [promtool, "check", "rules", str(RULES)], check=False, capture_output=True, text=True, timeout=50
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert [case.alert for case in CASES] == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_it_fires_beyond_its_threshold(promtool: Path, tmp_path: Path, case: Case) -> None:
    assert not judged(promtool, tmp_path, case, case.unwell, fires(case.alert, END, count=1))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_it_is_silent_up_to_its_threshold(promtool: Path, tmp_path: Path, case: Case) -> None:
    assert not judged(promtool, tmp_path, case, case.well, fires(case.alert, END, count=0))


@pytest.mark.parametrize("case", HELD, ids=lambda case: case.alert)
def test_it_is_silent_before_its_time(promtool: Path, tmp_path: Path, case: Case) -> None:
    """What lasts shorter is a fail-over, a roll-out or a storm."""
    waits = BY_NAME[case.alert].for_
    seconds = int(waits[:-1]) * {"s": 1, "m": 60}[waits[-1]]
    before = f"{seconds - SAMPLES_SECONDS}s"

    assert not judged(promtool, tmp_path, case, case.unwell, fires(case.alert, before, count=0))


def test_with_redis_away_the_subscription_is_not_told_of_as_well(promtool: Path, tmp_path: Path) -> None:
    """One cause, one alert."""
    case = Case("SubscriptionDown", {"subscription_up": "0+0x240", "redis_up": "{}+0x240"}, "", "")

    wrong = judged(
        promtool, tmp_path, case, "0", fires("SubscriptionDown", END, count=0), fires("RedisDown", END, count=1)
    )

    assert not wrong


def test_memory_without_a_known_limit_tells_nothing(promtool: Path, tmp_path: Path) -> None:
    case = Case("MemoryHigh", {"memory_bytes": "{}+0x240", "memory_limit_bytes": "0+0x240"}, "", "")

    assert not judged(promtool, tmp_path, case, "999999999", fires("MemoryHigh", END, count=0))
