"""Dashboards and rules name what the code exports, and leave nothing out without a reason."""

import re

import pytest

from gateway.adapters.prometheus import METRICS, Kind
from tools.dashboards.__main__ import ROOT
from tools.dashboards.alert import Alert
from tools.dashboards.alerts import ALERTS
from tools.dashboards.boards import BOARDS, NOT_SHOWN
from tools.dashboards.panel import names_in

EXPORTED = {metric.name: metric for metric in METRICS}
QUERIES = [query.expr for board in BOARDS for panel in board.panels for query in panel.queries]
EXPRS = QUERIES + [alert.expr for alert in ALERTS]
_SELECTOR = re.compile(r"(relayrouter_\w+)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
_SCOPE = {"namespace", "app_kubernetes_io_instance", "pod"}


def metric_of(name: str) -> str:
    """A histogram's buckets, sum and count are series of the metric."""
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and base in EXPORTED and EXPORTED[base].kind is Kind.HISTOGRAM:
            return base
    return name


def test_every_metric_that_is_named_exists() -> None:
    """A typing error would be an empty panel, or an alert that never fires."""
    assert {metric_of(name) for name in names_in(EXPRS)} <= set(EXPORTED)


def test_every_metric_is_on_a_dashboard_or_says_why_not() -> None:
    """A new metric belongs on a panel (tools/dashboards/board_*.py), or in NOT_SHOWN with the reason."""
    shown = {metric_of(name) for name in names_in(QUERIES)}

    assert set(EXPORTED) - shown == set(NOT_SHOWN)
    assert all(NOT_SHOWN.values())


def test_every_metric_is_measured_somewhere() -> None:
    """A row of the table whose number nobody writes is a panel that is well for ever."""
    written = " ".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "gateway").rglob("*.py")
        if path.name not in ("table.py", "measures.py")
    )

    assert not [metric.name for metric in METRICS if not re.search(rf"\b{metric.source}\b", written)]


def test_every_label_value_that_is_asked_for_exists() -> None:
    """`reason="epoch_change"` would be an alert that never fires."""
    unknown = []
    for expr in EXPRS:
        for name, matchers in _SELECTOR.findall(expr):
            metric = EXPORTED[metric_of(name)]
            for label, _, value in _MATCHER.findall(matchers):
                if label in _SCOPE:
                    continue
                asked = value.split("|")
                if label not in metric.labels or not set(asked) <= set(metric.values):
                    unknown.append(f"{name}{{{label}={value}}}")

    assert not unknown


def test_every_label_that_is_grouped_by_exists() -> None:
    """Of a panel's one metric: `by (reason)` of a metric without reasons is one nameless line."""
    wrong = []
    for expr in QUERIES:
        grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expr) for label in group.split(",")}
        labels = {label for name in names_in([expr]) for label in EXPORTED[metric_of(name)].labels}
        if not grouped <= labels | _SCOPE | {"le"}:
            wrong.append(expr)

    assert not wrong


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_speaks_only_of_labels_that_it_has(alert: Alert) -> None:
    """A label that the expression has summed away would be shown as nothing."""
    kept = {label.strip() for group in re.findall(r"by \(([^)]*)\)", alert.expr) for label in group.split(",")}

    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= kept


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_settings_that_a_threshold_names_exist(alert: Alert) -> None:
    """Thresholds follow from defaults: who renames a setting hears of it."""
    from gateway.adapters.config import describe_settings

    keys = {row.key for row in describe_settings()}
    topics = {key.partition(".")[0] for key in keys}
    named = {match[0] for match in re.finditer(r"\b([a-z_]+)\.[a-z_]+\b", alert.why) if match[1] in topics}

    assert named - {name for name in named if name.endswith(".md")} <= keys
