"""Turns a gateway's measures into Prometheus text, by the table. Reads at scrape time only; counts nothing itself."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from gateway.adapters.prometheus.table import METRICS, OTHER, Kind, Metric
from gateway.domain.measures import Gauges, Histogram, Measures


class Exposition(Collector):
    """One per gateway, with a registry of its own. `text` is what `/metrics` answers."""

    def __init__(self, measures: Measures, read_gauges: Callable[[], Gauges]) -> None:
        self._measures = measures
        self._read_gauges = read_gauges
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Family]:
        gauges = self._read_gauges()
        for metric in METRICS:
            yield _family(metric, getattr(gauges if metric.kind is Kind.GAUGE else self._measures, metric.source))


def _family(metric: Metric, value: Any) -> Family:
    if metric.kind is Kind.HISTOGRAM:
        return _histogram(metric, value)
    family_type = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    if metric.label is None:
        return family_type(metric.name, metric.meaning, value=float(value))
    family = family_type(metric.name, metric.meaning, labels=[metric.label])
    for label_value, count in _by_value(metric, value).items():
        family.add_metric([label_value], float(count))
    return family


def _by_value(metric: Metric, counts: Mapping[str, int]) -> dict[str, int]:
    """Every listed value, also with 0; what is not listed counts as `other`."""
    if metric.is_named:
        return dict(counts)
    listed = dict.fromkeys(metric.values, 0)
    unlisted: Counter[str] = Counter()
    for value, count in counts.items():
        known = value.replace(" ", "_")
        if known in listed:
            listed[known] += count
        else:
            unlisted[OTHER] += count
    if unlisted:
        listed[OTHER] = listed.get(OTHER, 0) + unlisted[OTHER]
    return listed


def _histogram(metric: Metric, histogram: Histogram) -> Family:
    buckets: list[tuple[str, float]] = []
    running = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        running += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), running))
    family = HistogramMetricFamily(metric.name, metric.meaning)
    family.add_metric([], buckets=buckets, sum_value=histogram.total)
    return family


__all__ = ["Exposition"]
