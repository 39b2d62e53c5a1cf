"""Asks a Prometheus everything that dashboards and alerts ask, and tells what has no data.

`python -m tools.dashboards.ask http://localhost:9090 --namespace relay --release relay`; exit status 1: some has none,
2: there is no Prometheus.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode
from urllib.request import urlopen

from tools.dashboards.alert import PREFIX
from tools.dashboards.alerts import ALERTS
from tools.dashboards.boards import BOARDS
from tools.dashboards.panel import WINDOW

TIMEOUT_SECONDS: Final = 20
ONLY_WITHOUT_GATEWAYS: Final = frozenset({"Absent"})
"""Alerts whose value is there only while nothing is scraped."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reader of the dashboards has chosen above them."""

    namespace: str = ".*"
    release: str = ".*"
    pod: str = ".*"
    window: str = "1m"

    def fill(self, expr: str) -> str:
        for variable, value in (
            (WINDOW, self.window),
            ("$namespace", self.namespace),
            ("$release", self.release),
            ("$pod", self.pod),
        ):
            expr = expr.replace(variable, value)
        return expr


def questions() -> Iterator[tuple[str, str]]:
    """What asks, and its query: of each panel and of each alert."""
    for board in BOARDS:
        for panel in board.panels:
            for query in panel.queries:
                yield f"{board.name}: {panel.title}", query.expr
    for alert in ALERTS:
        if alert.name not in ONLY_WITHOUT_GATEWAYS:
            yield f"{PREFIX}{alert.name}", alert.value


def has_data(values: list[float]) -> bool:
    """At least one series, and a number in each: no quantile of nothing."""
    return bool(values) and not any(math.isnan(value) for value in values)


def query(url: str, expr: str) -> list[float]:
    """The values of all series now. OSError: it does not answer, or not well."""
    with urlopen(f"{url}/api/v1/query?{urlencode({'query': expr})}", timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  the caller's URL
        return [float(series["value"][1]) for series in json.load(answer)["data"]["result"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tools.dashboards.ask")
    parser.add_argument("url")
    parser.add_argument("--namespace", default=".*")
    parser.add_argument("--release", default=".*")
    parser.add_argument("--window", default="1m", help="of rates; at least four scrapes")
    parser.add_argument(
        "--may-lack", action="append", default=[], metavar="NAME", help="a panel (`redis: Time of a round`) or alert"
    )
    given = parser.parse_args()
    scope = Scope(given.namespace, given.release, window=given.window)
    asked, lacking = 0, set()
    try:
        for name, expr in questions():
            asked += 1
            if not has_data(query(given.url.rstrip("/"), scope.fill(expr))):
                lacking.add(name)
    except (
        OSError,
        ValueError,
    ) as exc:  # HTTP errors are of the first; a bad URL and an answer that is no JSON of the second
        print(f"error: {given.url} does not answer as a Prometheus does: {exc}", file=sys.stderr)
        return 2
    missing = sorted(lacking - set(given.may_lack))
    print(json.dumps({"asked": asked, "without_data": sorted(lacking), "missing": missing}, indent=1))
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
