"""`relayrouter tail`: a session's text, or its frames, as they arrive; lives through the death of any gateway."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import aclosing
from enum import Enum
from typing import Annotated, assert_never

import typer

from gateway.adapters.client.address import DEFAULT_URL, BadAddress
from gateway.adapters.client.endings import SessionEnded
from gateway.adapters.client.frames import Frame
from gateway.adapters.client.reader import ReaderIdentity, ReaderState, ReaderStatus, SessionReader, Start
from gateway.adapters.client.settings import BackoffSettings, ReaderSettings
from gateway.adapters.client.texts import Change, Ended, RunTexts, Shown
from gateway.cli.printable import printable
from gateway.domain.operator_error import OperatorError
from gateway.domain.sessions.position import GapReason
from gateway.domain.wire.cursor import Cursor, InvalidCursor, parse_seq
from gateway.domain.wire.ids import InvalidId, check_id

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"


class Output(Enum):
    HUMAN = "human"
    """Text with what happens around it."""
    TEXT = "text"
    """The bytes of the answer and nothing else."""
    FRAMES = "frames"
    """Each frame as received, one a line."""


def command(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session to read.")],
    since: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on after this cursor (or a bare sequence number).")
    ] = None,
    from_start: Annotated[
        bool,
        typer.Option("--from-start", help="Begin with the oldest retained message; default: what comes from now on."),
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Only the text's bytes on standard output.")] = False,
    frames: Annotated[bool, typer.Option("--frames", help="One JSON frame a line, as received.")] = False,
    until_run_end: Annotated[
        bool, typer.Option("--until-run-end", help="Stop at the end of a run; exit code 2 if its text is not whole.")
    ] = False,
    url: Annotated[
        list[str] | None, typer.Option(envvar="RR_URL", help="A gateway; give several to be able to change.")
    ] = None,
    token: Annotated[str | None, typer.Option(envvar="RR_TOKEN", help="Token with scope subscribe.")] = None,
    client: Annotated[
        str | None, typer.Option(metavar="ID", help="Client id; one that is already connected is superseded.")
    ] = None,
    first_wait: Annotated[
        float,
        typer.Option(min=0.01, max=30, help="Upper end of the first reconnect delay in seconds; it doubles to 30."),
    ] = 1.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No status lines on standard error.")] = False,
) -> None:
    """Print what a session says until it is over or Ctrl-C; status lines go to standard error."""
    if text and frames:
        raise typer.BadParameter("give either --text or --frames, not both")
    if since is not None and from_start:
        raise typer.BadParameter("give either --since or --from-start, not both")
    output = Output.TEXT if text else Output.FRAMES if frames else Output.HUMAN
    screen = _Screen(output, is_quiet=quiet)
    try:
        identity = ReaderIdentity(token=token)
        if client is not None:
            identity = ReaderIdentity(client=check_id(client, "client"), token=token)
        reader = SessionReader(
            url or [DEFAULT_URL],
            check_id(session, "session id"),
            identity,
            _start(since, from_start=from_start),
            ReaderSettings(backoff=BackoffSettings(base_seconds=first_wait)),
            on_status=screen.status,
        )
    except (InvalidId, InvalidCursor, BadAddress) as exc:
        raise OperatorError(str(exc)) from exc
    try:
        end = asyncio.run(_tail(reader, screen, until_run_end=until_run_end))
    except SessionEnded as exc:
        raise OperatorError(exc.message) from exc
    finally:
        if reader.cursor is not None:
            screen.note(f"stopped after {reader.cursor} (go on with --since)")
    if end is not None and end.is_equal is False:
        raise OperatorError(f"the text received for run {end.run} differs from the digest of its run_end")
    if end is not None and end.is_equal is None and reader.tally.gaps[GapReason.EVICTED]:
        raise OperatorError(
            f"the text received for run {end.run} is not whole: {reader.tally.announced} messages had left the log "
            "before they could be read (raise retention.max_messages and max_bytes, or publish at a pace)"
        )


async def _tail(reader: SessionReader, screen: "_Screen", *, until_run_end: bool) -> Ended | None:
    """Returns the end of the run that it waited for. Raises SessionEnded."""
    texts = RunTexts()
    async with aclosing(reader.frames()) as frames:
        async for frame in frames:
            change = texts.apply(frame)
            screen.show(frame, change)
            if isinstance(change, Ended) and until_run_end:
                return change
    return None


def _start(since: str | None, *, from_start: bool) -> Start:
    if since is not None and since.isdecimal():
        return Start(seq=parse_seq(since))
    return Start(cursor=Cursor.parse(since) if since is not None else None, from_start=from_start)


class _Screen:
    """Writes at once: what a pipe's buffer holds back is no live text."""

    def __init__(self, output: Output, *, is_quiet: bool) -> None:
        self._output = output
        self._is_quiet = is_quiet
        self._is_at_line_start = True
        self._was_reasoning = False
        self._is_terminal = sys.stdout.isatty()
        """Then the text of others must not command it; to a pipe every byte goes as it is."""
        self._is_styled = output is Output.HUMAN and self._is_terminal and "NO_COLOR" not in os.environ

    def show(self, frame: Frame, change: Change) -> None:
        match self._output:
            case Output.FRAMES:
                self._write(frame.raw + "\n")
            case Output.TEXT:
                if isinstance(change, Ended) or (isinstance(change, Shown) and not change.is_reasoning):
                    self._write(change.text)
            case Output.HUMAN:
                self._show_human(frame, change)
            case _:
                assert_never(self._output)
        if frame.is_control:
            self._note_control(frame)

    def status(self, status: ReaderStatus) -> None:
        if status.state is ReaderState.LIVE:
            self.note(f"connected to {status.gateway} ({status.resumed})")
        elif status.state is ReaderState.WAITING:
            self.note(f"{status.cause}; next attempt in {status.wait_seconds:.1f} s")

    def note(self, line: str) -> None:
        if not self._is_quiet:
            print(f"relayrouter tail: {printable(line)}", file=sys.stderr)

    def _show_human(self, frame: Frame, change: Change) -> None:
        match change:
            case Shown(text=text, is_reasoning=is_reasoning):
                if is_reasoning is not self._was_reasoning:
                    self._was_reasoning = is_reasoning
                    self._begin_line()
                self._write(text, is_dim=is_reasoning)
            case Ended(run=run, reason=reason, is_equal=is_equal, text=text):
                self._write(text)
                verdict = {True: ", digest equal", False: ", DIGEST DIFFERS", None: ""}[is_equal]
                self._begin_line()
                self._write(f"[end of {run}: {reason}{verdict}]\n", is_dim=True)
            case None:
                if frame.kind == "run_start":
                    self._begin_line()
                    self._write(f"[{frame.run}]\n", is_dim=True)
                elif frame.kind == "cut":
                    self._begin_line()
                    self._write(f"[{frame.run}: interrupted here]\n", is_dim=True)
            case _:
                assert_never(change)

    def _begin_line(self) -> None:
        if not self._is_at_line_start:
            self._write("\n")

    def _note_control(self, frame: Frame) -> None:
        get: Callable[[str], object] = frame.payload.get
        if frame.kind == "gap":
            self.note(f"gap: messages {get('first')} to {get('last')} are gone ({get('reason')})")
        elif frame.kind == "error" and get("retryable") is True:  # any other one is the last line, from the close
            self.note(f"error from the gateway: {get('code')}: {get('message')}")
        elif frame.kind == "snapshot" and get("partial") is True:
            self.note(f"the text of {frame.run} has {get('bytes')} bytes, of which only the beginning is kept")
        elif frame.kind == "ask_open":
            ask = get("ask")
            if isinstance(ask, dict):
                self.note(f"the agent asks ({ask.get('ask')}): {ask.get('message')}")
        elif frame.kind == "reconnect_later":
            self.note(f"the gateway asks to come back in {get('after_ms')} ms ({get('reason')})")

    def _write(self, text: str, *, is_dim: bool = False) -> None:
        if text:
            self._is_at_line_start = text.endswith("\n")
            if self._is_terminal:
                text = printable(text)
            styled = f"{_DIM}{text}{_PLAIN}" if is_dim and self._is_styled else text
            sys.stdout.buffer.write(styled.encode())
            sys.stdout.buffer.flush()
