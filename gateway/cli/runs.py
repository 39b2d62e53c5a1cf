"""`relayrouter runs`: open and recent runs over all gateways, as a table that follows them or once as JSON."""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gateway.adapters.client.address import BadAddress
from gateway.adapters.client.run_reports import DEFAULT_ADMIN_URL, RunReport, RunReports
from gateway.domain.operator_error import OperatorError

_COLUMNS = ("run", "session", "gateway", "dialect", "tokens", "tokens/s", "first token", "gap", "duration", "stalls")
_ALL_FIT = 130
"""Characters in a line that show all columns; below it some go, and run and session are shortened."""
_LEFT_OUT = {_ALL_FIT: {"dialect", "first token", "stalls"}, 100: {"gateway"}}
"""Below so many characters."""
_STYLES = {"open": "green", "complete": "dim", "interrupted": "yellow", "cancelled": "yellow"}


def command(
    url: Annotated[
        list[str] | None,
        typer.Option("--admin-url", "--url", envvar="RR_ADMIN_URL", help="Admin address of a gateway; give all."),
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope admin.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once instead of following.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: one JSON object a run and line.")] = False,
    every: Annotated[float, typer.Option(min=0.1, max=60, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Exit code 2 when no gateway answers."""
    if as_json and not once:
        raise typer.BadParameter("--json goes with --once")
    try:
        reports = RunReports(url or [DEFAULT_ADMIN_URL], token=token)
        asyncio.run(_print_once(reports, as_json=as_json) if once else _follow(reports, every))
    except BadAddress as exc:
        raise OperatorError(str(exc)) from exc


async def _print_once(reports: RunReports, *, as_json: bool) -> None:
    async with reports:
        read = await reports.read()
    if as_json:
        for row in _rows(read):
            print(json.dumps(row, ensure_ascii=False))
    else:
        console = Console(width=None if sys.stdout.isatty() else _ALL_FIT)
        console.print(runs_table(read, console.width))
    _check(read)


async def _follow(reports: RunReports, every_seconds: float) -> None:
    async with reports:
        read = await reports.read()
        _check(read)
        console = Console()
        with Live(runs_table(read, console.width), console=console, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every_seconds)
                live.update(runs_table(await reports.read(), console.width), refresh=True)


def _check(read: Sequence[RunReport]) -> None:
    """A typing error must not look like an idle cluster."""
    if all(report.problem is not None for report in read):
        raise OperatorError("; ".join(f"{report.url}: {report.problem}" for report in read))


def _rows(read: Sequence[RunReport]) -> list[dict[str, Any]]:
    """Open ones first, the oldest on top; then those that ended, the last one on top."""
    rows = [row for report in read for row in report.rows]
    still_open = sorted((row for row in rows if row["state"] == "open"), key=lambda row: -row["age_seconds"])
    ended = sorted((row for row in rows if row["state"] != "open"), key=lambda row: row.get("ended_seconds", 0.0))
    return still_open + ended


def runs_table(read: Sequence[RunReport], width: int) -> Table:
    """One line a run within `width` characters, from 80 on."""
    rows = _rows(read)
    left_out = set().union(*(names for below, names in _LEFT_OUT.items() if width < below))
    places = [place for place, name in enumerate(_COLUMNS) if name not in left_out]
    table = Table(box=None, header_style="bold", caption=_caption(read, rows), caption_justify="left")
    for place in places:
        # Run and session give way, the rest keeps its width.
        table.add_column(_COLUMNS[place], justify="left" if place < 4 else "right", no_wrap=place >= 2)
    table.add_column("state", no_wrap=True)
    for row in rows:
        cells = _cells(row)
        shown = [Text(cells[place], no_wrap=True, overflow="ellipsis") for place in places]
        table.add_row(*shown, Text(row["state"], style=_STYLES.get(row["state"], "red")))
    return table


def _cells(row: dict[str, Any]) -> list[str]:
    silent = row["silent_seconds"] if row["state"] == "open" else row["longest_gap_seconds"]
    return [
        row["run"],
        row["session"] if row["tenant"] == "default" else f"{row['tenant']}/{row['session']}",
        row["gateway"],
        row["dialect"] or "tokens",
        f"{row['tokens']:,}",
        _number(row["tokens_per_second"]),
        _seconds(row["first_token_seconds"]),
        _seconds(silent),
        _seconds(row["age_seconds"]),
        str(row["stalls"] or ""),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _seconds(value: float | None) -> str:
    """As short as it is telling."""
    if value is None:
        return ""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 100 else f"{value / 60:.0f} min"


def _caption(read: Sequence[RunReport], rows: Sequence[dict[str, Any]]) -> str:
    still_open = sum(row["state"] == "open" for row in rows)
    lines = [f"{still_open} open, {len(rows) - still_open} ended lately; gap: since the last token, or the longest one"]
    lines += [f"{report.url}: {report.problem}" for report in read if report.problem is not None]
    return "\n".join(lines)
