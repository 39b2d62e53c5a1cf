"""Puts the demo together: with a page for a person, or as a check for a script."""

import asyncio
import json
import random
import signal
import socket
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from gateway.adapters.logs import set_up_logs
from gateway.app.demo.check import passes, sabotage
from gateway.app.demo.stage import Stage
from gateway.app.demo.streams import RecordedStream, from_file, samples
from gateway.app.demo.web import DemoPage
from gateway.core.tasks import TaskOwner
from gateway.domain.streams.dialects import DialectName
from gateway.settings import LogSettings

_EXIT_OK, _EXIT_DIFFERS, _EXIT_BY_SIGNAL = 0, 1, 128


@dataclass(frozen=True, slots=True)
class DemoOptions:
    seconds: float
    """With `check`: how long new runs are begun."""
    is_check: bool = False
    as_json: bool = False
    input: Path | None = None
    dialect: DialectName = DialectName.OPENAI
    host: str = "127.0.0.1"
    port: int = 0
    seed: int | None = None


def run_demo(options: DemoOptions) -> int:
    """The exit code. Raises OperatorError when it cannot start."""
    set_up_logs(LogSettings(level="error"))
    streams = samples() if options.input is None else [from_file(options.input, options.dialect)]
    return uvloop.run(_until_signal(_check(options, streams) if options.is_check else _show(options, streams)))


async def _until_signal(work: Coroutine[Any, Any, int]) -> int:
    """The first SIGINT, SIGTERM or SIGHUP cancels the work, which cleans up; later ones change nothing."""
    task = asyncio.current_task()
    received: list[int] = []

    def end(number: int) -> None:
        if not received and task is not None:
            task.cancel()
        received.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    try:
        return await work
    except asyncio.CancelledError:
        if not received:
            raise
        return _EXIT_BY_SIGNAL + received[0]


async def _check(options: DemoOptions, streams: Sequence[RecordedStream]) -> int:
    seed = random.randrange(2**32) if options.seed is None else options.seed  # noqa: S311 - a seed to be printed
    print(f"demo --check: seed {seed}, {options.seconds:g} s", file=sys.stderr)
    rng = random.Random(seed)  # noqa: S311 - chooses faults
    owner = TaskOwner()
    stage = Stage(owner, streams, rng)
    try:
        await stage.open()
        result = await sabotage(stage, owner, options.seconds, rng)
    finally:
        await stage.close()
    _print(result, as_json=options.as_json)
    if passes(result):
        return _EXIT_OK
    for event in stage.events:
        print(f"{event['at']:7.1f} s  {event['what']}", file=sys.stderr)
    for reader in stage.readers:
        print(f"{reader.name}: {reader.status()} {reader.result}", file=sys.stderr)
    return _EXIT_DIFFERS


async def _show(options: DemoOptions, streams: Sequence[RecordedStream]) -> int:
    owner = TaskOwner()
    stage = Stage(owner, streams, random.Random(options.seed))  # noqa: S311 - jitter
    page: DemoPage | None = None
    try:
        print("starting Valkey and three gateways ...", file=sys.stderr)
        port = options.port or _free_port(options.host)
        await stage.open([f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", options.host)])
        page = DemoPage(stage, owner)
        await page.start(options.host, port)
        owner.start("play", stage.agent.play())
        address = f"http://{options.host}:{port}/"
        print(json.dumps({"url": address}) if options.as_json else f"the demo is at {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    finally:
        if page is not None:
            await page.stop()
        await stage.close()
    _print(stage.tally(), as_json=options.as_json)
    return _EXIT_OK


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def _print(result: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, list):
            print(f"{name:14} {len(value)}", *(f"{'':14} {one}" for one in value), sep="\n")
        else:
            print(f"{name:14} {value}")


__all__ = ["DemoOptions", "run_demo"]
