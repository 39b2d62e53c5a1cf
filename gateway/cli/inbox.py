"""`relayrouter inbox`: how much waits for agents, take or follow items, list dead letters and put them back."""

import asyncio
import json
import sys
from enum import Enum
from typing import Annotated, Any

import typer

from gateway.adapters.client.address import DEFAULT_URL, BadAddress
from gateway.adapters.client.inbox import Inbox, InboxError, InboxItem, InboxSettings
from gateway.domain.operator_error import OperatorError
from gateway.domain.wire.ids import InvalidId, check_id


class Action(Enum):
    LAG = "lag"
    TAKE = "take"
    TAIL = "tail"
    DEAD = "dead"
    REDRIVE = "redrive"


def command(
    action: Annotated[
        Action,
        typer.Argument(
            metavar="lag|take|tail|dead|redrive",
            help="What waits; one batch; items as they come; dead letters; put them back.",
        ),
    ] = Action.LAG,
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="[ENTRY]...", help="For redrive: only these, as `dead` names them.")
    ] = None,
    ack: Annotated[
        bool, typer.Option("--ack", help="Acknowledge what take and tail print; otherwise it comes again.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--max", min=1, max=1_000, help="Items of one take, or dead letters listed.")
    ] = 10,
    wait: Annotated[float, typer.Option(min=0, max=60, help="Seconds that `take` waits for the first item.")] = 0.0,
    lease: Annotated[
        float, typer.Option(min=1, help="Seconds until an item comes again that was not acknowledged.")
    ] = 30.0,
    consumer: Annotated[str | None, typer.Option(metavar="NAME", help="Consumer; default: one of its own.")] = None,
    url: Annotated[
        list[str] | None, typer.Option(envvar="RR_URL", help="A gateway; give several to survive its death.")
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope consume.")] = None,
) -> None:
    """Print one JSON object a line. Whatever is taken is this command's until its lease ends."""
    if entries and action is not Action.REDRIVE:
        raise typer.BadParameter("entries are only for redrive")
    if ack and action not in (Action.TAKE, Action.TAIL):
        raise typer.BadParameter("--ack is only for take and tail")
    try:
        inbox = Inbox(
            url or [DEFAULT_URL],
            None if consumer is None else check_id(consumer, "consumer"),
            token=token,
            settings=InboxSettings(lease_seconds=lease, max_items=min(limit, 100)),
            on_trouble=lambda cause: print(f"relayrouter inbox: {cause}", file=sys.stderr),
        )
        asyncio.run(_act(inbox, action, entries, limit, wait, ack=ack))
    except (InvalidId, BadAddress, InboxError) as exc:
        raise OperatorError(str(exc)) from exc


async def _act(inbox: Inbox, action: Action, entries: list[str] | None, limit: int, wait: float, *, ack: bool) -> None:
    async with inbox:
        match action:
            case Action.LAG:
                _print(await inbox.lag())
            case Action.TAKE:
                items = await inbox.take_once(wait)
                for item in items:
                    _show(item)
                if ack and items:
                    await inbox.ack(*items)
            case Action.TAIL:
                async for item in inbox:
                    _show(item)
                    if ack:
                        await item.ack()
            case Action.DEAD:
                for letter in await inbox.dead(limit):
                    _print(letter)
            case Action.REDRIVE:
                _print({"redriven": await inbox.redrive(entries or None)})


def _show(item: InboxItem) -> None:
    _print({"receipt": item.receipt, "deliveries": item.deliveries, "item": item.fields})


def _print(fields: Any) -> None:
    """At once: what a pipe's buffer holds back may be acknowledged and never seen."""
    print(json.dumps(fields, ensure_ascii=False), flush=True)
