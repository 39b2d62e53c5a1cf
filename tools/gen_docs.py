"""Writes the tables that are generated from the code between their markers; `--check` only tells if they are fresh."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gateway.adapters.config import describe_settings
from gateway.adapters.prometheus import METRICS
from gateway.domain.routing.table import COLUMNS, SHIPPED
from gateway.domain.wire.close_codes import CLOSE_RULES
from gateway.domain.wire.errors import ERROR_RULES

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.api.frame_docs import asyncapi, frames_of  # noqa: E402  this folder is no installed package
from tools.api.http_docs import openapi  # noqa: E402
from tools.chart.readme import table_of  # noqa: E402
from tools.chart.schema import schema_of  # noqa: E402
from tools.chart.values_file import CHART, Row, read_values  # noqa: E402
from tools.dashboards.alert import PREFIX  # noqa: E402
from tools.dashboards.alerts import ALERTS  # noqa: E402
from tools.dashboards.boards import BOARDS  # noqa: E402

BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def configuration() -> str:
    rows = [(f"`{row.key}`", _default(row.key, row.default), row.why) for row in describe_settings()]
    return _table(("setting", "default", "why"), rows)


def _default(key: str, value: object) -> str:
    match value:
        case None | []:
            return ""
        case int() if key.endswith("_bytes") and value % 1024 == 0 and value > 0:
            return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else f"{value // 1024} KiB"
        case str():
            return f"`{value}`"
        case _:
            return json.dumps(value)


def close_codes() -> str:
    rows = [(str(int(code)), rule.meaning, str(rule.reconnect)) for code, rule in CLOSE_RULES.items()]
    return _table(("code", "meaning", "reconnect"), rows)


def metrics() -> str:
    rows = [
        (f"`{metric.name}`", metric.kind, ", ".join(f"`{label}`" for label in metric.labels), metric.meaning)
        for metric in METRICS
    ]
    return _table(("metric", "kind", "labels", "meaning"), rows)


def dashboards() -> str:
    rows = [
        (
            board.title.partition(" / ")[2],
            f"`{board.name}.json`",
            "; ".join(section.title for section in board.sections),
        )
        for board in BOARDS
    ]
    return _table(("dashboard", "file", "sections"), rows)


def alerts() -> str:
    rows = [
        (f"[{PREFIX}{alert.name}]({alert.page.removeprefix('docs/')})", alert.severity.value, alert.for_, alert.why)
        for alert in ALERTS
    ]
    return _table(("alert, runbook", "severity", "for", "the threshold follows from"), rows)


def error_codes() -> str:
    rows = [
        (f"`{code.value}`", str(rule.http_status), "yes" if rule.retryable else "no", str(int(rule.close_code)))
        for code, rule in ERROR_RULES.items()
    ]
    return _table(("code", "HTTP status", "retry", "close code"), rows)


def routes() -> str:
    rows = [
        (f"`{message_type}`", *(_cell(value) for value in route.cells().values()))
        for (message_type, _), route in SHIPPED.items()
    ]
    return _table(("type", *COLUMNS), rows)


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {inner:g}" if isinstance(inner, float) else f"{name} {inner}" for name, inner in value.items()
        )
    return str(value)


def proxy(name: str) -> str:
    """A file of deploy/proxies, whole: the tests run what the page shows."""
    text = (ROOT / "deploy" / "proxies" / name).read_text(encoding="utf-8")
    return f"\n```{'yaml' if name.endswith('.yaml') else 'nginx' if name.endswith('.conf') else ''}\n{text}```\n\n"


def chart_values() -> list[Row]:
    return read_values((CHART / "values.yaml").read_text(encoding="utf-8"))


def chart_schema() -> str:
    return json.dumps(schema_of(chart_values()), indent=2) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "close-codes": close_codes,
    "metrics": metrics,
    "dashboards": dashboards,
    "alerts": alerts,
    "routes": routes,
    "error-codes": error_codes,
    "text-frames": lambda: frames_of("text"),
    "control-frames": lambda: frames_of("control"),
    "client-frames": lambda: frames_of("from client"),
    "nginx": lambda: proxy("nginx.conf"),
    "envoy": lambda: proxy("envoy.yaml"),
    "haproxy": lambda: proxy("haproxy.cfg"),
    "values": lambda: _table(("value", "default", "why"), table_of(chart_values())),
}


def close_code_vectors() -> str:
    """What each SDK's own table is tested against."""
    closes = [
        {"code": int(code), "name": code.name, "reconnect": rule.reconnect.name.lower(), "meaning": rule.meaning}
        for code, rule in CLOSE_RULES.items()
    ]
    errors = [
        {
            "code": code.value,
            "http_status": rule.http_status,
            "retryable": rule.retryable,
            "close_code": int(rule.close_code),
        }
        for code, rule in ERROR_RULES.items()
    ]
    return json.dumps({"close_codes": closes, "errors": errors}, indent=2) + "\n"


DOCUMENTS: dict[str, Callable[[], str]] = {
    "docs/asyncapi.yaml": asyncapi,
    "docs/openapi.yaml": openapi,
    "deploy/helm/relayrouter/values.schema.json": chart_schema,
    "sdk/conformance/vectors/close_codes.json": close_code_vectors,
}


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def fresh(text: str) -> str:
    """`text` with every generated block as it should be. KeyError names a block that nothing generates."""
    return BLOCK.sub(lambda block: f"{block[1]}{TABLES[block['name']]()}{block[3]}", text)


def wanted_files() -> dict[Path, str]:
    """Every file with something generated, as it should be."""
    pages = [ROOT / "README.md", CHART / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    wanted = {page: fresh(page.read_text(encoding="utf-8")) for page in pages}
    return wanted | {ROOT / name: write() for name, write in DOCUMENTS.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a file is stale, write nothing")
    is_check = parser.parse_args().check
    stale = []
    for path, wanted in wanted_files().items():
        if not path.exists() or path.read_text(encoding="utf-8") != wanted:
            stale.append(str(path.relative_to(ROOT)))
            if not is_check:
                path.write_text(wanted, encoding="utf-8")
    if stale and is_check:
        print(f"stale: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
