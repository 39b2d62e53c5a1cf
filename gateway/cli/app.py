"""The `relayrouter` command: which commands there are, and how every error ends: one readable line and exit code 2."""

import importlib
import os
import sys
import traceback
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from gateway import __version__
from gateway.domain.operator_error import OperatorError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

# Whichever click typer is built on, vendored or not: what it raises for a bad command line.
_UsageError: Any = typer.BadParameter.__base__


class Entry(NamedTuple):
    """A command's module (loaded only when it is run) and what it does in one line."""

    module: str
    summary: str


COMMANDS = {
    "serve": Entry("gateway.cli.serve", "Run one gateway."),
    "publish": Entry("gateway.cli.publish", "Pipe a text or a model's stream into a session as it arrives."),
    "tail": Entry("gateway.cli.tail", "Print a session's text as it arrives, through any gateway's death."),
    "runs": Entry("gateway.cli.runs", "Show open and recent runs of all gateways, as they go."),
    "cluster": Entry("gateway.cli.cluster", "Show the gateways that live: connections, round trips, backlog, version."),
    "routes": Entry("gateway.cli.routes", "Check, explain and show the route table; promote or roll back a canary."),
    "inbox": Entry("gateway.cli.inbox", "Items for agents: lag, take, tail, dead letters, redrive."),
    "token": Entry("gateway.cli.token", "Sign a token for development."),
    "config": Entry("gateway.cli.config", "Print the effective settings and where each came from."),
    "doctor": Entry("gateway.cli.doctor", "Check Redis and this machine, and say what to do about each finding."),
    "demo": Entry("gateway.cli.demo", "Three gateways, sample streams and a web page to break them on."),
}


class LazyGroup(TyperGroup):
    """Lists commands without importing them: `--help` and each command pay only for themselves."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(name=cmd_name, help=entry.summary)(importlib.import_module(entry.module).command)
        return typer.main.get_command(app)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


app = typer.Typer(
    name="relayrouter",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Relay token streams to people without losing, repeating or reordering a message.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"relayrouter {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Run and exit. Never shows a traceback, unless RR_DEBUG is set."""
    try:
        result = app(arguments or sys.argv[1:] or ["--help"], prog_name="relayrouter", standalone_mode=False)
        sys.exit(result if isinstance(result, int) else 0)
    except _UsageError as exc:
        _fail(_describe_usage(exc))
    except typer.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except OperatorError as exc:
        _fail(*exc.lines())
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); keep Python from complaining once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_ERROR)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except OSError as exc:
        _fail(_describe_os_error(exc))
    except Exception as exc:  # noqa: BLE001  the last border: whatever happened, the person gets one line
        message = " ".join(str(exc).split())[:300]
        _fail(f"unexpected {type(exc).__name__}: {message} (this is a bug: RR_DEBUG=1 shows where; please report it)")


def _describe_usage(exc: Any) -> str:
    command = exc.ctx.command_path if exc.ctx else "relayrouter"
    return f"{exc.format_message().rstrip('.')} (`{command} --help` shows what there is)"


def _describe_os_error(exc: OSError) -> str:
    what = exc.strerror or str(exc) or type(exc).__name__
    return f"{exc.filename}: {what}" if exc.filename else what


def _fail(*lines: str) -> None:
    if os.environ.get("RR_DEBUG"):
        traceback.print_exc()
    first, *rest = lines
    print(f"error: {first}", *rest, sep="\n", file=sys.stderr)
    sys.exit(EXIT_ERROR)
