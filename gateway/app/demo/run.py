"""Puts the demo together: with a page for a person, or as a check for a script."""

import asyncio
import json
import random
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from gateway.app.demo.check import Saboteur, passes, wait_until_complete
from gateway.app.demo.stage import Stage
from gateway.app.demo.streams import RecordedStream, from_file, samples
from gateway.app.demo.web import DemoPage
from gateway.core.tasks import TaskOwner
from gateway.domain.streams.dialects import DialectName

_EXIT_OK, _EXIT_DIFFERS = 0, 1


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
    streams = samples() if options.input is None else [from_file(options.input, options.dialect)]
    return uvloop.run(_check(options, streams) if options.is_check else _show(options, streams))


async def _check(options: DemoOptions, streams: Sequence[RecordedStream]) -> int:
    seed = random.randrange(2**32) if options.seed is None else options.seed  # noqa: S311 - a seed to be printed
    print(f"demo --check: seed {seed}, {options.seconds:g} s", file=sys.stderr)
    rng = random.Random(seed)  # noqa: S311 - chooses faults
    owner = TaskOwner()
    stage = Stage(owner, streams, rng, lambda: None)
    try:
        await stage.open()
        playing = owner.start("play", stage.play())
        saboteur = owner.start("saboteur", Saboteur(stage, rng).run())
        await asyncio.wait([playing], timeout=options.seconds)
        stage.finish()
        await playing
        saboteur.cancel()
        stage.redis_relay.heal()
        for member in stage.gateways.members:
            if member.state == "frozen":
                stage.gateways.send(member, signal.SIGCONT)
        await wait_until_complete(stage)
        result = stage.tally(is_over=True)
    finally:
        await stage.close()
    _print(result, as_json=options.as_json)
    return _EXIT_OK if passes(result) else _EXIT_DIFFERS


async def _show(options: DemoOptions, streams: Sequence[RecordedStream]) -> int:
    owner = TaskOwner()
    stage = Stage(owner, streams, random.Random(options.seed), lambda: None)  # noqa: S311 - jitter
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    page: DemoPage | None = None
    try:
        print("starting Valkey and three gateways ...", file=sys.stderr)
        port = options.port or _free_port(options.host)
        await stage.open([f"http://{name}:{port}" for name in ("127.0.0.1", "localhost", options.host)])
        page = DemoPage(stage, owner)
        await page.start(options.host, port)
        owner.start("play", stage.play())
        address = f"http://{options.host}:{port}/"
        print(json.dumps({"url": address}) if options.as_json else f"the demo is at {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        await ended.wait()
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
        if name == "faults":
            print(f"{name:14} {len(value)}", *(f"{'':14} {fault}" for fault in value), sep="\n")
        else:
            print(f"{name:14} {value}")


__all__ = ["DemoOptions", "run_demo"]
