"""`relayrouter demo`: the main job on real input, with buttons that break it; or as a check, without a person."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.app.demo.run import DemoOptions, run_demo
from gateway.domain.streams.dialects import DialectName


def command(
    check: Annotated[bool, typer.Option("--check", help="Break things by itself, compare every text, exit.")] = False,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="With --check: how long to stream.")] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the tally as one JSON line.")] = False,
    input_file: Annotated[
        Path | None, typer.Option("--input", help="A recorded stream instead of the samples.", metavar="FILE")
    ] = None,
    dialect: Annotated[DialectName, typer.Option(help="Of --input.")] = DialectName.OPENAI,
    host: Annotated[str, typer.Option(help="Address of the page.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes any free one.")] = 0,
    seed: Annotated[int | None, typer.Option(help="With --check: repeat a run's choice of faults.")] = None,
) -> None:
    """Valkey, gateways, four readers, a page to break, roll and resize it. --check exits 0 when every text is equal."""
    options = DemoOptions(seconds, check, as_json, input_file, dialect, host, port, seed)
    raise typer.Exit(run_demo(options))
