"""`relayrouter serve`: one gateway, with its own Valkey where asked."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.adapters.config import load_settings
from gateway.app.serve import ServeOptions, serve


def command(
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.", metavar="FILE")] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Start a Valkey of our own; it ends with us.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where the embedded Valkey keeps its data.", metavar="DIR")
    ] = None,
    redis_url: Annotated[
        str | None,
        typer.Option(help="Instead of redis.url: redis://, rediss://, unix:// or redis+sentinel://.", metavar="URL"),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address of the public listener.")] = None,
    port: Annotated[int | None, typer.Option(help="Its port; 0 takes any free one.")] = None,
    admin_host: Annotated[str | None, typer.Option(help="Address of the admin listener.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Its port; 0 takes any free one.")] = None,
    auth: Annotated[str | None, typer.Option(help="jwt, or none (loopback only).", metavar="jwt|none")] = None,
    name: Annotated[str | None, typer.Option(help="First half of the gateway id; default: the host's name.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or console.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="When ready, print the addresses as one JSON line.")] = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C, then drain; a second signal shortens the drain."""
    if embedded and redis_url is not None:
        raise typer.BadParameter("give either --embedded or --redis-url, not both")
    if data_dir is not None and not embedded:
        raise typer.BadParameter("--data-dir is only for --embedded; add --embedded or leave it out")
    loaded = load_settings(
        config,
        overrides={
            "redis.url": redis_url,
            "server.host": host,
            "server.port": port,
            "server.admin_host": admin_host,
            "server.admin_port": admin_port,
            "server.gateway_name": name,
            "auth.mode": auth,
            "log.level": log_level,
            "log.format": log_format,
        },
    )
    raise typer.Exit(serve(loaded.settings, ServeOptions(embedded=embedded, data_dir=data_dir, as_json=as_json)))
