"""What a row of the tables is, and the few shapes that a query takes. Knows nothing of Grafana's JSON."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

SCOPE = 'namespace=~"$namespace",app_kubernetes_io_instance=~"$release",pod=~"$pod"'
"""The variables of every dashboard. `All` is `.*`, which matches series without the label, too: outside Kubernetes."""
WINDOW = "$__rate_interval"
_NAME = re.compile(r"\brelayrouter_\w+")


class Kind(StrEnum):
    LINES = "timeseries"
    AREAS = "areas"
    """Lines upon each other: parts of a whole."""
    NUMBER = "stat"
    HEAT = "heatmap"


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    unit: str
    """Grafana's id of it: s, bytes, Bps, cps (a second), short, percentunit."""
    says: str
    """What is good, what is bad, where to go on: shown beside the title."""
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    width: int = 8
    """Of 24."""
    warns_from: float | None = None
    """Drawn as a line: the threshold of the alert that looks at the same."""


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Board:
    name: str
    """Of the file, and in the uid."""
    title: str
    sections: tuple[Section, ...]

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for section in self.sections for panel in section.panels)


def gauge(name: str, by: str = "pod", where: str = "") -> Query:
    return Query(f"sum by ({by}) ({_series(name, where)})", f"{{{{{by}}}}}")


def highest(name: str, legend: str, where: str = "") -> Query:
    """Where each gateway tells the same, or the worst one counts."""
    return Query(f"max({_series(name, where)})", legend)


def total(name: str, legend: str, where: str = "") -> Query:
    return Query(f"sum({_series(name, where)})", legend)


def rate(name: str, by: str = "pod", where: str = "") -> Query:
    """A second."""
    return Query(f"sum by ({by}) (rate({_series(name, where)}[{WINDOW}]))", f"{{{{{by}}}}}")


def pace(name: str, legend: str, where: str = "") -> Query:
    """A second, over all gateways."""
    return Query(f"sum(rate({_series(name, where)}[{WINDOW}]))", legend)


def quantiles(name: str, *shares: float, by: str = "") -> tuple[Query, ...]:
    labels, suffix = (f"le, {by}", f" {{{{{by}}}}}") if by else ("le", "")
    return tuple(
        Query(
            f"histogram_quantile({share:g}, sum by ({labels}) (rate({_series(name + '_bucket', '')}[{WINDOW}])))",
            f"P{share * 100:g}{suffix}",
        )
        for share in shares
    )


def heat(name: str) -> Query:
    return Query(f"sum by (le) (increase({_series(name + '_bucket', '')}[{WINDOW}]))", "{{le}}")


def share(part: str, of: str, legend: str) -> Query:
    """`part` and `of`: names of counters, with labels where they need some: `closes_total{reason="drain"}`."""
    above, below = (f"sum(rate({_with_scope(counter)}[{WINDOW}]))" for counter in (part, of))
    return Query(f"{above} / clamp_min({below}, 0.001)", legend)


def names_in(exprs: Iterable[str]) -> set[str]:
    """Every metric that a query names, as a scrape shows it."""
    return {name for expr in exprs for name in _NAME.findall(expr)}


def _with_scope(counter: str) -> str:
    name, _, labels = counter.partition("{")
    return _series(name, labels.rstrip("}"))


def _series(name: str, where: str) -> str:
    return f"relayrouter_{name}{{{where + ',' if where else ''}{SCOPE}}}"


__all__ = [
    "SCOPE", "WINDOW", "Board", "Kind", "Panel", "Query", "Section", "gauge", "heat", "highest", "names_in", "pace",
    "quantiles", "rate", "share", "total",
]  # fmt: skip
