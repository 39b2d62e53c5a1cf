"""`relayrouter routes`: check a route table, explain a message's way, show what is in force, promote or roll back."""

import asyncio
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.adapters.client.address import BadAddress
from gateway.adapters.client.route_reports import RoutesNotAnswered, ask_routes
from gateway.adapters.client.run_reports import DEFAULT_ADMIN_URL
from gateway.adapters.config.route_file import load_route_file
from gateway.domain.operator_error import OperatorError
from gateway.domain.routing.book import RouteBook
from gateway.domain.routing.explain import explain
from gateway.domain.routing.table import ANY, COLUMNS, MessageType
from gateway.domain.wire.ids import DEFAULT_TENANT


class Action(Enum):
    CHECK = "check"
    EXPLAIN = "explain"
    SHOW = "show"
    PROMOTE = "promote"
    ROLLBACK = "rollback"


def command(
    action: Annotated[
        Action,
        typer.Argument(
            metavar="check|explain|show|promote|rollback",
            help="Is a file right; which way does a message go; what is in force; decide about the canary.",
        ),
    ] = Action.SHOW,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="For check, and for explain without a gateway.")
    ] = None,
    message_type: Annotated[MessageType | None, typer.Option("--type", help="For explain.")] = None,
    kind: Annotated[str, typer.Option(help="For explain: the payload's kind.")] = ANY,
    session: Annotated[
        str | None, typer.Option(help="For explain: whose table, the current one or the canary.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="Of that session.")] = DEFAULT_TENANT,
    url: Annotated[
        str, typer.Option("--admin-url", "--url", envvar="RR_ADMIN_URL", help="Admin address of any gateway.")
    ] = DEFAULT_ADMIN_URL,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope admin.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Promote and rollback hold for all gateways within seconds and through restarts. Exit code 2 when it is wrong."""
    if file is not None and action not in (Action.CHECK, Action.EXPLAIN):
        raise typer.BadParameter("a file goes with check and explain")
    if (message_type is None) == (action is Action.EXPLAIN):
        raise typer.BadParameter("--type goes with explain, which needs it")
    try:
        match action:
            case Action.CHECK:
                _check(file, as_json=as_json)
            case Action.EXPLAIN if message_type is not None:
                _print_explained(_explained(file, url, token, message_type, kind, session, tenant), as_json=as_json)
            case Action.SHOW:
                asyncio.run(_show(url, token, as_json=as_json))
            case _:
                report = asyncio.run(ask_routes(url, "POST", f"routes/{action.value}", token=token))
                print(json.dumps(report) if as_json else _headline(report))
    except (BadAddress, RoutesNotAnswered) as exc:
        raise OperatorError(str(exc)) from exc


def _check(file: Path | None, *, as_json: bool) -> None:
    if file is None:
        raise typer.BadParameter("check needs the FILE")
    found = load_route_file(file)
    canary = found.canary
    said = {"version": found.current.name, "canary": None if canary is None else canary.table.name}
    if as_json:
        print(json.dumps(said))
        return
    share = "" if canary is None else f", canary {canary.table.name} for {canary.share:.1%}"
    tenants = "" if canary is None or not canary.tenants else f" and tenants {', '.join(sorted(canary.tenants))}"
    print(f"{file}: right; version {found.current.name}{share}{tenants}")


def _explained(
    file: Path | None,
    url: str,
    token: str | None,
    message_type: MessageType,
    kind: str,
    session: str | None,
    tenant: str,
) -> dict[str, Any]:
    if file is not None:
        return explain(RouteBook(load_route_file(file)), tenant, session, message_type, kind)
    query = {"type": message_type.value, "kind": kind, "tenant": tenant}
    if session is not None:
        query["session"] = session
    return asyncio.run(ask_routes(url, "GET", "routes/explain", token=token, query=query))


def _print_explained(found: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(found))
        return
    print(f"table {found['version']} ({found['table']}), row {found['row']}")
    for column in COLUMNS:
        print(f"  {column:17} {_cell(found['route'][column])}")


async def _show(url: str, token: str | None, *, as_json: bool) -> None:
    report = await ask_routes(url, "GET", "routes", token=token)
    if as_json:
        print(json.dumps(report))
        return
    cluster = await ask_routes(url, "GET", "cluster", token=token)
    console = Console()
    console.print(_rows(report["current"], "current"))
    if report["canary"] is not None:
        console.print(_rows(report["canary"], "canary"))
    print(_headline(report))
    for row in cluster.get("gateways", ()):
        print(f"  {row['gateway']}: {row.get('routes') or 'does not say'}")
    for problem in report["problems"]:
        print(f"not in force: {problem}")


def _headline(report: Mapping[str, Any]) -> str:
    canary = report["canary"]
    lines = [f"in force: {report['in_force']}"]
    if canary is not None:
        whom = [f"{canary['share']:.1%} of the sessions"] if canary["share"] else []
        whom += [f"tenant {tenant}" for tenant in canary["tenants"]]
        verdict = canary["verdict"]
        on_trial = f"on trial for {', '.join(whom) or 'nobody'}"
        lines.append(f"canary {canary['version']}: {on_trial if verdict is None else verdict.replace('_', ' ')}")
    return "\n".join(lines)


def _rows(described: Mapping[str, Any], slot: str) -> Table:
    title = f"{described['version']} ({slot})"
    table = Table(box=None, header_style="bold", title=title, title_justify="left")
    for name in ("type", "kind", *COLUMNS):
        table.add_column(name, overflow="fold")
    for message_type, kinds in described["routes"].items():
        for kind, cells in kinds.items():
            table.add_row(*map(Text, (message_type, kind, *(_cell(cells[column]) for column in COLUMNS))))
    return table


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)
