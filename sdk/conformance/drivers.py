"""A driver: one SDK in a process of its own that speaks JSON lines, with many sessions. Owned by the runner."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parents[2]
READY_SECONDS: Final = 60.0
EXIT_SECONDS: Final = 10.0
LINE_BYTES: Final = 16 * 1024 * 1024
STDERR_LINES: Final = 60
Event = dict[str, Any]


class DriverFailed(Exception):
    """It did not start, or ended in the middle."""


@dataclass(frozen=True, slots=True)
class Program:
    """How a driver is started."""

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]


def programs() -> dict[str, Program]:
    python = Program(
        "python",
        (sys.executable, str(ROOT / "sdk/python/conformance/driver.py")),
        {"PYTHONPATH": str(ROOT / "sdk/python")},
    )
    js = Program(
        "js", (sys.executable, str(ROOT / "tools/node.py"), "node", str(ROOT / "sdk/js/conformance/driver.mjs")), {}
    )
    return {"python": python, "js": js}


class Driver:
    """`async with Driver(program) as driver`. Events of a session go to who listens to it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stderr: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._listeners: dict[str, Callable[[Event], None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = asyncio.Event()
        self.has_ended = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            *self.program.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_BYTES,
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **self.program.environ},
        )
        self._tasks = [asyncio.create_task(self._read_events()), asyncio.create_task(self._read_stderr())]
        ready = asyncio.create_task(self._ready.wait())
        ended = asyncio.create_task(self.has_ended.wait())
        _, late = await asyncio.wait((ready, ended), timeout=READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        if not self._ready.is_set():
            await self.end()
            raise DriverFailed(f"{self.program.name}: the driver is not ready: {self.tail()}")
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.end()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        """As a page that is gone in a moment: nothing of it is told, nothing tidied up."""
        assert self._process is not None
        self._process.kill()
        await self.has_ended.wait()

    async def end(self) -> None:
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            self.say({"do": "exit"})
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), EXIT_SECONDS)
        if process.returncode is None:
            process.kill()
            await process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def say(self, line: Event) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError, RuntimeError):
            self._process.stdin.write(json.dumps(line).encode() + b"\n")

    def listen(self, session: str, listener: Callable[[Event], None]) -> None:
        self._listeners[session] = listener

    def forget(self, session: str) -> None:
        self._listeners.pop(session, None)

    def tail(self) -> str:
        return "\n".join(self.stderr[-STDERR_LINES:])

    async def _read_events(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            try:
                event = json.loads(line)
            except ValueError:
                self.stderr.append(f"(stdout) {line[:500].decode(errors='replace')}")
                continue
            event["heard_at"] = time.monotonic()
            if event.get("event") == "ready":
                self._ready.set()
            listener = self._listeners.get(str(event.get("s")))
            if listener is not None:
                listener(event)
        self.has_ended.set()

    async def _read_stderr(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        while line := await self._process.stderr.readline():
            self.stderr.append(line.decode(errors="replace").rstrip())
            del self.stderr[: -4 * STDERR_LINES]


__all__ = ["Driver", "DriverFailed", "Event", "Program", "programs"]
