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
from gateway.adapters.client.paced import paced_bytes, paced_lines
from gateway.adapters.client.publish_run import Pace, publish_run
from gateway.adapters.client.publish_stream import StreamPublisher
from gateway.adapters.client.publisher import Publisher, PublishError
from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.run_script import RunScript
from gateway.domain.streams.segment import SegmentMode
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
    segment: Annotated[
        SegmentMode | None, typer.Option(help="How the text is cut into messages; default: the gateway's.")
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Push messages instead of streaming: for a proxy that holds bodies back.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, print counts and digests as one line.")] = False,
) -> None:
    """Publish one run. Exit code 2 also when the stream was cut or failed; what came before is delivered."""
    try:
        run = check_id(run or f"run-{token_hex(6)}", "run")
        session = check_id(session, "session id")
        urls = [check_base(base) for base in url or [DEFAULT_URL]]
    except (InvalidId, BadAddress) as exc:
        raise OperatorError(str(exc)) from exc
    by_token = tokens_per_second is not None and dialect is DialectName.TEXT
    source = ByteSource(_open(file), _TOKEN_BYTES if by_token else _CHUNK_BYTES)
    pace = Pace(tokens_per_second) if tokens_per_second is not None else None
    began = time.monotonic()
    try:
        if push:
            publisher = Publisher(urls, session, token=token, on_trouble=_say)
            outcome = asyncio.run(_push(publisher, source, dialect, RunScript(run), pace))
        else:
            options = {} if segment is None else {"segment": segment.value}
            stream = StreamPublisher(
                urls, session, run, dialect=dialect.value, options=options, token=token, on_trouble=_say
            )
            outcome = asyncio.run(_stream(stream, source, dialect, pace))
    except PublishError as exc:
        raise OperatorError(str(exc)) from exc
    outcome |= {"session": session, "seconds": round(time.monotonic() - began, 3)}
    _report(outcome, as_json=as_json)
    if outcome["reason"] != EndReason.COMPLETE:
        raise OperatorError(f"the run ended as {outcome['reason']}: {outcome.get('problem') or 'by somebody else'}")


async def _push(
    publisher: Publisher, source: ByteSource, dialect: DialectName, script: RunScript, pace: Pace | None
) -> dict[str, Any]:
    _end_on_signals(source)
    end = await publish_run(publisher, source.chunks(), open_dialect(dialect), script, pace)
    tally = publisher.tally
    return {
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
    }


async def _stream(
    publisher: StreamPublisher, source: ByteSource, dialect: DialectName, pace: Pace | None
) -> dict[str, Any]:
    _end_on_signals(source)
    chunks = source.chunks()
    if pace is not None:
        chunks = (paced_bytes if dialect is DialectName.TEXT else paced_lines)(chunks, pace)
    result = await publisher.publish(chunks)
    answer = result.answer
    fields = ("problem", "finish_reason", "usage", "replaced", "bytes", "code_points", "sha256")
    return {
        "run": result.run,
        "reason": result.reason,
        **{name: answer.get(name) for name in fields},
        "reasoning": answer.get("thinking") or answer.get("reasoning"),
        "seen": result.seen,
        "seq": answer.get("seq"),
        "retries": result.attaches,
        "lost_writes": result.lost_writes,
    }


def _end_on_signals(source: ByteSource) -> None:
    """The first one ends the run in the log, a second one ends us."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _stop_gently, loop, number, source)


def _stop_gently(loop: asyncio.AbstractEventLoop, number: signal.Signals, source: ByteSource) -> None:
    source.stop()
    loop.remove_signal_handler(number)


def _open(file: str) -> int:
    if file == "-":
        return 0
    return os.open(Path(file), os.O_RDONLY | os.O_CLOEXEC)


def _say(cause: str) -> None:
    print(f"relayrouter publish: {cause}", file=sys.stderr)


def _report(outcome: dict[str, Any], *, as_json: bool) -> None:
    if outcome["replaced"]:
        _say(f"{outcome['replaced']} times U+FFFD stands for what was no UTF-8")
    if as_json:
        print(json.dumps(outcome))
        return
    messages = f"{outcome['messages']} messages, " if "messages" in outcome else ""
    print(
        f"run {outcome['run']}: {outcome['reason']}, {outcome['bytes']} bytes of text, {messages}"
        f"last seq {outcome['seq']}, {outcome['retries']} retries",
        file=sys.stderr,
    )
