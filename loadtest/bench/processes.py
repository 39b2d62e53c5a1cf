"""The processes of a benchmark: pinned to cores, started until ready, always ended."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gateway.adapters.embedded.program import program_environment
from loadtest.processes import free_port, valkey_program

READY_SECONDS = 20
SERVER_CORE, LOAD_CORE = 0, 1
QUICK_CONNECTS = {"RR_ADMISSION__NEW_PER_SECOND": "50000", "RR_ADMISSION__NEW_BURST": "50000"}
"""Clients that measure connect as fast as they can: admission is on, and refuses nobody."""


_CORES = sorted(os.sched_getaffinity(0))
"""Before anybody was pinned: a child of a pinned process has only its parent's."""


def core_number(core: int) -> int:
    """What the kernel calls it."""
    return _CORES[core % len(_CORES)]


def all_cores() -> set[int]:
    """For who must not be pinned."""
    return set(_CORES)


def pin(core: int) -> None:
    """Keep the calling process on one core, where the machine has more than one."""
    os.sched_setaffinity(0, {core_number(core)})


@contextmanager
def python_module(module: str, *arguments: str, core: int, env: dict[str, str] | None = None) -> Iterator["Talker"]:
    """Run `python -m module` on one core; ended when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | (env or {}),
        preexec_fn=lambda: pin(core),  # noqa: PLW1509 - a benchmark has one thread
    )
    try:
        yield Talker(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class Talker:
    """A process that answers JSON lines."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.pid = process.pid
        self.url = ""

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"process {self.pid} ended without an answer; see its error output above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        return self.read()


@contextmanager
def valkey(core: int = LOAD_CORE) -> Iterator[tuple[str, int]]:
    """A Valkey server without persistence: its URL and process id."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [valkey_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
            stdout=subprocess.DEVNULL,
            env=program_environment(os.environ),
            preexec_fn=lambda: pin(core),  # noqa: PLW1509 - a benchmark has one thread
        )
        try:
            _wait_for_port(port)
            yield f"redis://127.0.0.1:{port}/0", process.pid
        finally:
            process.kill()
            process.wait()


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"nothing listens on port {port}")


@contextmanager
def gateway(redis_url: str, *, auth: str = "none", env: dict[str, str] | None = None) -> Iterator["Talker"]:
    """`relayrouter serve` on the server core. The ready line is read; `.url` is set."""
    arguments = ("serve", "--json", "--redis-url", redis_url, "--auth", auth, "--port", "0", "--admin-port", "0")
    with python_module("gateway", *arguments, core=SERVER_CORE, env=QUICK_CONNECTS | (env or {})) as process:
        process.url = process.read()["url"]
        yield process
