"""`relayrouter config`: what is in effect, and where each value came from."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.adapters.config import Effective, effective_settings, load_settings


def command(
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.", metavar="FILE")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not a default.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: key -> value and source.")] = False,
) -> None:
    """Print the effective settings; secrets are hidden. Exit code 2 when one is bad or unknown."""
    rows = [row for row in effective_settings(load_settings(config)) if not changed or row.source != "default"]
    if as_json:
        print(json.dumps({row.key: {"value": row.value, "source": row.source} for row in rows}, indent=2))
        return
    print_table(rows)


def print_table(rows: list[Effective]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("setting", "value", "source"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        style = "dim" if row.source == "default" else ""
        table.add_row(row.key, Text(as_text(row.value)), Text(row.source, style=style))
    Console(soft_wrap=False).print(table)


def as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
