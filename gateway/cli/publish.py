"""`relayrouter publish`: a text or a model's stream, as it arrives, into a session."""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from secrets import token_hex
from typing import Annotated, Any

import typer

from gateway.adapters.client.address import DEFAULT_URL, BadAddress, check_base
from gateway.adapters.client.byte_source import ByteSource
from gateway.adapters.client.publish_run import Pace, publish_run
from gateway.adapters.client.publisher import Publisher, PublishError
from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.pieces import EndReason, StreamEnd
from gateway.domain.streams.run_script import RunScript
from gateway.domain.wire.ids import InvalidId, check_id

_TOKEN_BYTES = 4
"""About what a token of text has: with a pace, plain text is cut so."""
_CHUNK_BYTES = 16 * 1024


def command(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session to publish into.")],
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="What to publish; - is standard input.")] = "-",
    run: Annotated[str | None, typer.Option(help="Id of the run; default: a fresh one.", metavar="ID")] = None,
    dialect: Annotated[
        DialectName,
        typer.Option(
            help="What the input is: UTF-8 text, our own ndjson lines, or a provider's stream, one chunk a line, "
            "with or without `data: `."
        ),
    ] = DialectName.TEXT,
    url: Annotated[
        list[str] | None, typer.Option(envvar="RR_URL", help="A gateway; give several to survive its death.")
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope publish.")] = None,
    tokens_per_second: Annotated[
        float | None, typer.Option(min=0.01, help="Replay at this pace instead of as fast as the input comes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, print counts and digests as one line.")] = False,
) -> None:
    """Publish one run. Exit code 2 also when the stream was cut or failed; what came before is delivered."""
    try:
        script = RunScript(check_id(run or f"run-{token_hex(6)}", "run"))
        publisher = Publisher(
            [check_base(base) for base in url or [DEFAULT_URL]],
            check_id(session, "session id"),
            token=token,
            on_trouble=lambda cause: print(f"relayrouter publish: {cause}", file=sys.stderr),
        )
    except (InvalidId, BadAddress) as exc:
        raise OperatorError(str(exc)) from exc
    by_token = tokens_per_second is not None and dialect is DialectName.TEXT
    source = ByteSource(_open(file), _TOKEN_BYTES if by_token else _CHUNK_BYTES)
    began = time.monotonic()
    try:
        end = asyncio.run(_publish(publisher, source, dialect, script, tokens_per_second))
    except PublishError as exc:
        raise OperatorError(str(exc)) from exc
    _report(publisher, script, end, session, time.monotonic() - began, as_json=as_json)
    if end.reason is not EndReason.COMPLETE:
        raise OperatorError(f"the run ended as {end.reason}: {end.problem}")


async def _publish(
    publisher: Publisher,
    source: ByteSource,
    dialect: DialectName,
    script: RunScript,
    tokens_per_second: float | None,
) -> StreamEnd:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # The first one ends the run in the log, a second one ends us.
        loop.add_signal_handler(number, _stop_gently, loop, number, source)
    pace = Pace(tokens_per_second) if tokens_per_second is not None else None
    return await publish_run(publisher, source.chunks(), open_dialect(dialect), script, pace)


def _stop_gently(loop: asyncio.AbstractEventLoop, number: signal.Signals, source: ByteSource) -> None:
    source.stop()
    loop.remove_signal_handler(number)


def _open(file: str) -> int:
    if file == "-":
        return 0
    return os.open(Path(file), os.O_RDONLY | os.O_CLOEXEC)


def _report(
    publisher: Publisher, script: RunScript, end: StreamEnd, session: str, seconds: float, *, as_json: bool
) -> None:
    tally = publisher.tally
    if end.replaced:
        print(f"relayrouter publish: {end.replaced} times U+FFFD stands for what was no UTF-8", file=sys.stderr)
    if not as_json:
        print(
            f"run {script.run}: {end.reason}, {script.text.bytes} bytes of text, {tally.messages} messages, "
            f"last seq {tally.seq}, {tally.retries} retries",
            file=sys.stderr,
        )
        return
    summary: dict[str, Any] = {
        "session": session,
        "run": script.run,
        "reason": end.reason.value,
        "problem": end.problem,
        "finish_reason": end.finish_reason,
        "usage": end.usage,
        "replaced": end.replaced,
        **script.text.fields(),
        "reasoning": script.thinking.fields(),
        "messages": tally.messages,
        "seq": tally.seq,
        "retries": tally.retries,
        "registrations": tally.registrations,
        "lost_writes": tally.lost_writes,
        "seconds": round(seconds, 3),
    }
    print(json.dumps(summary))
