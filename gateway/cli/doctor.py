"""`relayrouter doctor`: is everything as a gateway needs it?"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gateway.adapters.config import load_settings
from gateway.app.doctor import examine
from gateway.app.findings import Finding, Level

_MARKS = {Level.OK: ("ok", "green"), Level.WARN: ("warn", "yellow"), Level.FAIL: ("FAIL", "bold red")}


def command(
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.", metavar="FILE")] = None,
    redis_url: Annotated[str | None, typer.Option(help="Instead of redis.url.", metavar="URL")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all findings.")] = False,
) -> None:
    """Exit code 0: a gateway would work; 1: something must be done; 2: the settings are bad."""
    findings = examine(load_settings(config, overrides={"redis.url": redis_url}).settings)
    failed = [finding for finding in findings if finding.level is Level.FAIL]
    if as_json:
        print(json.dumps({"ok": not failed, "findings": [asdict(finding) for finding in findings]}, indent=2))
    else:
        _print(findings)
    if failed:
        raise typer.Exit(1)


def _print(findings: list[Finding]) -> None:
    console = Console(highlight=False, soft_wrap=True, markup=False)
    width = max(len(finding.title) for finding in findings)
    for finding in findings:
        mark, style = _MARKS[finding.level]
        console.print(f"{mark:<5}", style=style, end="")
        console.print(f"{finding.title:<{width}}  {finding.seen}")
        if finding.what_to_do:
            console.print(f"{'':<{width + 7}}-> {finding.what_to_do}")
