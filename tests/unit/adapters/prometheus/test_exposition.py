"""Metrics: the table and the scrape are the same, all series exist from the start, and no id becomes a label."""

import dataclasses
import re
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.adapters.prometheus import METRICS, Exposition, Kind
from gateway.domain.measures import Gauges, Histogram, Measures

IDLE = Gauges({}, 0, 0, 0, 0, 0, False, False, False)


def scrape(measures: Measures, gauges: Gauges = IDLE) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = Exposition(measures, lambda: gauges).text().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_row_is_exported_and_nothing_else() -> None:
    text = Exposition(Measures(), lambda: IDLE).text().decode()
    exported = set(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))

    assert exported == {(metric.name, metric.kind.value) for metric in METRICS}


def test_every_measure_and_every_gauge_has_a_row() -> None:
    sources = [metric.source for metric in METRICS]
    fields = [field.name for values in (Measures, Gauges) for field in dataclasses.fields(values)]

    assert sorted(sources) == sorted(fields)


def test_a_labelled_measure_has_values_and_an_unlabelled_one_is_a_number() -> None:
    measures = Measures()
    for metric in METRICS:
        value = getattr(IDLE if metric.kind is Kind.GAUGE else measures, metric.source)
        assert isinstance(value, dict) == bool(metric.labels), metric.name
        assert isinstance(value, Histogram) == (metric.kind is Kind.HISTOGRAM), metric.name
        assert bool(metric.values or metric.is_named) == bool(metric.labels), metric.name


def test_all_series_exist_with_zero_before_anybody_came() -> None:
    series = scrape(Measures())

    assert set(series.values()) == {0.0}
    assert series["relayrouter_connections", (("state", "live"),)] == 0
    assert series["relayrouter_appends_total", (("outcome", "unavailable"),)] == 0


def test_values_come_from_the_measures() -> None:
    measures = Measures(messages_delivered=7)
    measures.appends["ok"] += 3
    measures.closes["session is gone"] += 2
    gauges = dataclasses.replace(IDLE, connections={"live": 5}, is_redis_up=True, unsent_bytes=12)

    series = scrape(measures, gauges)

    assert series["relayrouter_messages_delivered_total", ()] == 7
    assert series["relayrouter_appends_total", (("outcome", "ok"),)] == 3
    assert series["relayrouter_closes_total", (("reason", "session_is_gone"),)] == 2
    assert series["relayrouter_connections", (("state", "live"),)] == 5
    assert series["relayrouter_redis_up", ()] == 1
    assert series["relayrouter_unsent_bytes", ()] == 12


def test_no_id_path_or_odd_reason_makes_a_series() -> None:
    """Failure catalogue P01."""
    before = scrape(Measures())
    measures = Measures()
    odd = [f"session-{n}" for n in range(1_000)] + [f"/path/{n}" for n in range(500)] + [str(n) for n in range(50)]
    for metric in METRICS:
        counter = getattr(measures, metric.source, None)
        if isinstance(counter, Counter) and not metric.is_named:  # who counts those bounds their names
            counter.update(odd)
    gauges = dataclasses.replace(IDLE, connections=dict.fromkeys(odd, 1))

    after = scrape(measures, gauges)

    labels = {value for _, pairs in after for _, value in pairs}
    assert not labels & set(odd)
    assert set(after) - set(before) <= {("relayrouter_connections", (("state", "other"),))}
    assert after["relayrouter_closes_total", (("reason", "other"),)] == len(odd)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rtt_seconds", 0.003),
        ("rtt_seconds", 2.0),
        ("first_token_seconds", 20.0),
        ("run_seconds", 90.0),
        ("run_seconds", 600.0),
        ("publish_to_write_seconds", 0.0006),
        ("append_seconds", 5.0),
        ("loop_lag_seconds", 0.2),
    ],
)
def test_what_is_normal_falls_into_a_finite_bucket(name: str, value: float) -> None:
    """Failure catalogue P03."""
    measures = Measures()
    getattr(measures, name).observe(value)

    series = scrape(measures)

    metric = next(metric for metric in METRICS if metric.source == name)
    buckets = {pairs[0][1]: count for (key, pairs), count in series.items() if key == f"{metric.name}_bucket"}
    assert any(count == 1 for bound, count in buckets.items() if bound != "+Inf")
    assert len(buckets) < 20
    assert series[f"{metric.name}_count", ()] == 1
    assert series[f"{metric.name}_sum", ()] == pytest.approx(value)
