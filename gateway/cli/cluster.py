"""`relayrouter cluster`: the gateways that live, as a table that follows them or once as JSON."""

import asyncio
import json
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gateway.adapters.client.address import BadAddress
from gateway.adapters.client.cluster_report import ClusterReport, ClusterReports
from gateway.adapters.client.run_reports import DEFAULT_ADMIN_URL
from gateway.domain.operator_error import OperatorError

_COLUMNS = ("gateway", "state", "conns", "runs", "RTT P50", "P99", "behind", "unsent", "up", "version")
_LEFT = ("gateway", "state", "version")
_STYLES = {"serving": "green", "draining": "yellow"}
_REFUSES = {"no_new": "no new clients", "none": "refuses all"}


def command(
    url: Annotated[
        list[str] | None,
        typer.Option(
            "--admin-url", "--url", envvar="RR_ADMIN_URL", help="Admin address of any gateway, or of several."
        ),
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope admin.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once instead of following.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: one JSON object a gateway and line.")] = False,
    every: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Exit code 2 when no gateway answers."""
    if as_json and not once:
        raise typer.BadParameter("--json goes with --once")
    try:
        reports = ClusterReports(url or [DEFAULT_ADMIN_URL], token=token)
        asyncio.run(_print_once(reports, as_json=as_json) if once else _follow(reports, every))
    except BadAddress as exc:
        raise OperatorError(str(exc)) from exc


async def _print_once(reports: ClusterReports, *, as_json: bool) -> None:
    async with reports:
        read = _checked(await reports.read())
    if as_json:
        for row in read.rows:
            print(json.dumps(row, ensure_ascii=False))
    else:
        Console().print(cluster_table(read, time.time()))


async def _follow(reports: ClusterReports, every_seconds: float) -> None:
    async with reports:
        with Live(cluster_table(_checked(await reports.read()), time.time()), auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every_seconds)
                live.update(cluster_table(await reports.read(), time.time()), refresh=True)


def _checked(read: ClusterReport) -> ClusterReport:
    """A typing error must not look like an empty cluster."""
    if read.problem is not None:
        raise OperatorError(read.problem)
    return read


def cluster_table(read: ClusterReport, now: float) -> Table:
    """`now`: Unix seconds."""
    table = Table(box=None, header_style="bold", caption=_caption(read), caption_justify="left")
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=name != "gateway", overflow="fold")
    for row in read.rows:
        cells = _cells(row, now)
        table.add_row(Text(cells[0]), _state(row), *map(Text, cells[1:]))
    return table


def _state(row: dict[str, Any]) -> Text:
    """With whom its watermarks refuse; gateways of before did not tell."""
    state = row["state"]
    refuses = _REFUSES.get(row.get("admission", "open"))
    if refuses is None:
        return Text(state, style=_STYLES.get(state, ""))
    return Text(f"{state}, {refuses}", style="red")


def _cells(row: dict[str, Any], now: float) -> list[str]:
    """All but the state."""
    return [
        row["gateway"],
        f"{row['connections']:,}",
        f"{row['open_runs']:,}",
        _ms(row["rtt_p50_ms"]),
        _ms(row["rtt_p99_ms"]) + (" rising" if row.get("is_rtt_rising") else ""),
        f"{row['behind_messages']:,}",
        f"{row['unsent_bytes'] / 1024:,.0f} KiB",
        _age(now - row["started_at_ms"] / 1000),
        row["version"],
    ]


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _caption(read: ClusterReport) -> str:
    rows = read.rows
    versions = sorted({str(row["version"]) for row in rows})
    connections, open_runs = (sum(row[name] for row in rows) for name in ("connections", "open_runs"))
    gateways = f"{len(rows)} gateways, {connections:,} connections, {open_runs:,} open runs"
    lines = [f"{gateways}; RTT: of the last minute"]
    if len(versions) > 1:
        lines.append(f"versions side by side: {', '.join(versions)}")
    if read.problem is not None:
        lines.append(f"not up to date: {read.problem}")
    return "\n".join(lines)
