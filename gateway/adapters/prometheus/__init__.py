"""Metrics: one table of names (`table`), and the exposition of a gateway's measures by it."""

from gateway.adapters.prometheus.exposition import Exposition
from gateway.adapters.prometheus.table import METRICS, Kind, Metric

__all__ = ["METRICS", "Exposition", "Kind", "Metric"]
