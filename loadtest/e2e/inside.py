"""A process in the cluster's network that answers questions: one JSON line in, one out."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from loadtest.e2e.tool import ROOT

LINE_BYTES: Final = 64 * 1024 * 1024
ASK_SECONDS: Final = 60.0


class ProcessEnded(Exception):
    """A part of the load is no more; what it has seen is lost with it."""


class Inside:
    """Start once, ask one thing at a time, end always."""

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._name = name
        self._command = list(command)
        self._environ = {**os.environ, **environ}
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=pipe,
            stdout=pipe,
            cwd=ROOT,
            env=self._environ,
            limit=LINE_BYTES,
            start_new_session=True,
        )

    async def ask(self, do: str, *, seconds: float = ASK_SECONDS, **details: Any) -> dict[str, Any]:
        """Raises ProcessEnded, also when it is not answered in time."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with self._turn, asyncio.timeout(seconds):
                process.stdin.write(json.dumps({"do": do, **details}).encode() + b"\n")
                line = await process.stdout.readline()
        except (TimeoutError, OSError) as exc:
            raise ProcessEnded(f"{self._name} did not answer `{do}` in {seconds:g} s") from exc
        if not line:
            raise ProcessEnded(f"{self._name} ended with {await process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def serve(answer: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    """The other side: answers standard input's lines until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        print(json.dumps(await answer(json.loads(line))), flush=True)


__all__ = ["Inside", "ProcessEnded", "serve"]
