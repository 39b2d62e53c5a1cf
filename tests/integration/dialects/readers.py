"""The client libraries of others as one process: jobs in, what each library made of a run out (tests/clients)."""

import asyncio
import fcntl
import json
import subprocess
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Self

from tools.node import command_of, environment, node_directory

ROOT = Path(__file__).parents[3]
PROJECT = ROOT / "tests" / "clients"
INSTALL_SECONDS = 120
ANSWER_SECONDS = 40.0


def install() -> None:
    """What package-lock.json names, unless it is there. Several test runs may do it at once."""
    with (PROJECT / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there, wanted = PROJECT / "node_modules" / ".package-lock.json", PROJECT / "package-lock.json"
        if there.exists() and there.stat().st_mtime >= wanted.stat().st_mtime:
            return
        command = command_of(node_directory(), ["npm", "ci"])
        subprocess.run(command, cwd=PROJECT, env=environment(), check=True, timeout=INSTALL_SECONDS)
        there.touch()


class Readers:
    """`async with Readers() as readers`: `answer = await readers.read("ai-sdk", url)`; any number at once."""

    def __init__(self) -> None:
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Self:
        self._process = await asyncio.create_subprocess_exec(
            "node",
            "read.mjs",
            cwd=PROJECT,
            env=environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=16 * 1024 * 1024,
        )
        self._task = asyncio.create_task(self._take_answers())
        return self

    async def __aexit__(self, *exc: object) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._task

    async def read(self, library: str, url: str, **more: Any) -> dict[str, Any]:
        """What the library has when the run has ended for it."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"id": number, "library": library, "url": url, **more}).encode() + b"\n")
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer

    async def _take_answers(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            answer = json.loads(line)
            future = self._waiting.pop(answer["id"])
            if not future.done():
                future.set_result(answer)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the readers' process has ended"))


__all__ = ["Readers", "install"]
