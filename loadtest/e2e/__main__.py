"""`python -m loadtest.e2e`: everything that RelayRouter promises on Kubernetes, tried on a real one.

Exit status 0: all passed. 1: something failed. 3: this machine cannot run it, and why. Writes build/e2e.json; a full
run also writes the table in docs/evidence.md, one of single steps with all streams their rows.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from loadtest.e2e.evidence import amend_evidence, versions_of, write_evidence
from loadtest.e2e.images import Images
from loadtest.e2e.inside import ProcessEnded
from loadtest.e2e.place import Place
from loadtest.e2e.report import Row, exit_code, table
from loadtest.e2e.tool import ROOT, CannotRun, CommandFailed, Tool

NODES: Final = 3
STREAMS: Final = 600
SMALL_STREAMS: Final = 60
STEPS: Final[dict[str, tuple[str, ...]]] = {
    "1": ("install",),
    "2": ("rollout",),
    "3": ("scaling", "monitoring"),
    "4": ("faults",),
    "5": ("manifests",),
}
"""Number -> modules `step_<name>` with `async def run(place: Place) -> list[Row]`."""
SMALL_STEPS: Final = "1,2"
REPORT: Final = ROOT / "build" / "e2e.json"


@dataclass(slots=True)
class Found:
    rows: list[Row] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    is_full = not (arguments.steps or arguments.small or arguments.streams)
    steps = arguments.steps or (SMALL_STEPS if arguments.small else ",".join(STEPS))
    unknown = set(steps.split(",")) - STEPS.keys()
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    streams = arguments.streams or (SMALL_STREAMS if arguments.small else STREAMS)
    found = Found()
    reason = ""
    try:
        asyncio.run(within(arguments.within, _run(arguments, steps.split(","), streams, found)))
    except CannotRun as exc:
        reason = str(exc)
    if found.rows:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps([row.as_dict() for row in found.rows], indent=2) + "\n", encoding="utf-8")
        print(table(found.rows))
    if reason:
        print(f"cannot run: {reason}", file=sys.stderr)
        return exit_code([*found.rows, Row("the rest", note=reason, is_tried=False)])
    if is_full:
        write_evidence(found.rows, found.versions)
    elif streams == STREAMS:
        amend_evidence(found.rows, found.versions)
    return exit_code(found.rows)


async def within(seconds: float, running: Coroutine[Any, Any, None]) -> None:
    """SIGTERM ends it as well; the cluster goes down in either case. Raises CannotRun."""
    task = asyncio.create_task(running)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        async with asyncio.timeout(seconds or None):
            await task
    except TimeoutError as exc:
        raise CannotRun(f"not done after {seconds:g} s") from exc
    except asyncio.CancelledError as exc:
        raise CannotRun("it was ended") from exc


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m loadtest.e2e", description=__doc__)
    parser.add_argument("--steps", help=f"comma between them, of {','.join(STEPS)}; default: all")
    parser.add_argument("--streams", type=int, default=0, help=f"live streams; default {STREAMS}")
    parser.add_argument("--small", action="store_true", help=f"steps {SMALL_STEPS} with {SMALL_STREAMS} streams")
    parser.add_argument("--use-running", action="store_true", help="a cluster that is up; it stays")
    parser.add_argument("--loaded-images", action="store_true", help="it has the gateway's images already")
    parser.add_argument("--keep", action="store_true", help="leave the cluster, and the namespaces, to look at")
    parser.add_argument("--build-seconds", type=float, default=1200.0, help="for the cluster's programs")
    parser.add_argument("--within", type=float, default=0.0, help="seconds for all of it; default: as long as it takes")
    return parser


async def _run(arguments: argparse.Namespace, numbers: list[str], streams: int, found: Found) -> None:
    modules = [name for number in numbers for name in STEPS[number]]
    tool = Tool.find()
    if arguments.use_running:
        if not await tool.is_up():
            raise CannotRun("--use-running, but no cluster is up")
        await _steps(tool, arguments, modules, streams, found)
        return
    if await tool.is_up():
        raise CannotRun("a cluster is up already, and may be somebody's: `--use-running`, or take it down")
    try:
        _say(f"starting {NODES} nodes")
        await tool.up(NODES, prometheus=not arguments.small, build_seconds=arguments.build_seconds)
        await _steps(tool, arguments, modules, streams, found)
    finally:
        if not arguments.keep:
            with suppress(CommandFailed):
                await tool.down()


async def _steps(tool: Tool, arguments: argparse.Namespace, modules: list[str], streams: int, found: Found) -> None:
    images = Images(tool, are_loaded=arguments.loaded_images)
    _say("making and loading images")
    await images.present()
    await images.redis()
    found.versions.update(await versions_of(tool))
    place = Place(
        tool, images, streams, is_small=arguments.small, keep=arguments.keep, versions=found.versions
    )  # fmt: skip
    for name in modules:
        _say(f"step {name}")
        rows = await step(place, name)
        for row in rows:
            verdict = "passed" if row.is_passed else "FAILED" if row.is_tried else "not tried"
            _say(f"{verdict}: {row.step}: {row.note}")
        found.rows += rows


async def step(place: Place, name: str) -> list[Row]:
    """A step that breaks off is one failed row; the others are tried all the same."""
    began = time.monotonic()
    try:
        found: list[Row] = await import_module(f"loadtest.e2e.step_{name}").run(place)
    except CannotRun as exc:
        return [Row(name, seconds=time.monotonic() - began, note=str(exc), is_tried=False)]
    except (CommandFailed, ProcessEnded, TimeoutError, OSError) as exc:
        return [Row(name, seconds=time.monotonic() - began, note=f"{type(exc).__name__}: {exc}")]
    return found


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S', time.gmtime())}] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
