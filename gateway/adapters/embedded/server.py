"""A real Valkey as our own child: loopback, append-only persistence, gone when we are gone, however we go.

Blocking calls; from an event loop use `asyncio.to_thread`. Called by gateway.app.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from gateway.adapters.embedded import launcher
from gateway.adapters.embedded.data_dir import DataDir
from gateway.adapters.embedded.program import find_program, program_environment
from gateway.domain.operator_error import OperatorError

LaunchMode = Literal["pdeathsig", "guard"]

_START_SECONDS = 60.0
"""Loading an append-only file of some GB takes about that long."""
_STOP_SECONDS = 5.0
_PORT_ATTEMPTS = 5


class EmbeddedServer:
    """One running server. `start` returns when it answers; `stop` when it is gone and the directory is free."""

    def __init__(self, data_dir: DataDir, port: int, mode: LaunchMode) -> None:
        self.port = port
        self._data_dir = data_dir
        self._mode: LaunchMode = mode
        self._exited = threading.Event()
        self._process: subprocess.Popen[bytes]
        self.on_exit: Callable[[int], None] | None = None
        """Called once, from another thread, with the exit code when the server ends although nobody called `stop`."""
        self._stopping = False

    @classmethod
    def start(
        cls, data_dir: Path, *, port: int = 0, program: Path | None = None, mode: LaunchMode | None = None
    ) -> Self:
        """The data of an earlier start is found again. `port` 0 takes a free one. OperatorError says what to do."""
        program = program or find_program()
        mode = mode or ("pdeathsig" if sys.platform == "linux" else "guard")
        directory = DataDir.open(data_dir)
        try:
            attempts_left = _PORT_ATTEMPTS
            while True:
                server = cls(directory, port or _free_port(), mode)
                server._launch(program)
                if server._wait_until_ready():
                    return server
                attempts_left -= 1
                # A port may be taken by somebody between our look and the server's bind.
                if port or not server._port_was_taken() or attempts_left == 0:
                    raise OperatorError(
                        f"the embedded Valkey did not start: {server._last_words()} (log: {server.log_file})"
                    )
        except BaseException:
            directory.close()
            raise

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int:
        """Of the process that was launched (in mode `guard` that is the guard's)."""
        return self._process.pid

    @property
    def log_file(self) -> Path:
        return self._data_dir.path / "valkey" / "valkey.log"

    @property
    def is_running(self) -> bool:
        return not self._exited.is_set()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """True when the server has ended."""
        return self._exited.wait(timeout_seconds)

    def stop(self) -> None:
        """An orderly end within 5 s, else a hard one. Twice is harmless."""
        if self._stopping:
            return
        self._stopping = True
        self._end()
        self._data_dir.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, program: Path) -> None:
        directory = self.log_file.parent
        directory.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.log_file.rename(self.log_file.with_suffix(".log.1"))
        command = [
            sys.executable, "-I", "-S", str(Path(launcher.__file__)), self._mode, str(os.getpid()),
            str(program), *_arguments(directory, self.port, self.log_file),
        ]  # fmt: skip
        started: queue.SimpleQueue[subprocess.Popen[bytes] | OSError] = queue.SimpleQueue()
        # PR_SET_PDEATHSIG fires when the starting *thread* ends, so one thread starts the server and stays with it.
        threading.Thread(target=self._live_with, args=(command, started), name="embedded-valkey", daemon=True).start()
        outcome = started.get()
        if isinstance(outcome, OSError):
            raise OperatorError(f"the embedded Valkey cannot be started: {outcome}") from outcome
        self._process = outcome

    def _live_with(self, command: list[str], started: "queue.SimpleQueue[subprocess.Popen[bytes] | OSError]") -> None:
        try:
            process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(self._data_dir.server_fd,),
                env=program_environment(os.environ),
                # A Ctrl-C at the terminal is for us: the server stops after our clients. Not a session of its
                # own, because a stopped server must be continued, and so ended, when we die (see launcher).
                process_group=0,
            )
        except OSError as exc:
            self._exited.set()
            started.put(exc)
            return
        started.put(process)
        code = process.wait()
        if process.stdin is not None:
            process.stdin.close()
        self._exited.set()
        if self.on_exit is not None and not self._stopping:
            self.on_exit(code)

    def _wait_until_ready(self) -> bool:
        """False when it ended first."""
        deadline = time.monotonic() + _START_SECONDS
        while not self._exited.wait(0.01):
            # The server cannot tell us that it is ready; asking is the only way.
            if _answers_ping(self.port):
                return True
            if time.monotonic() > deadline:
                self._end()
                raise OperatorError(
                    f"the embedded Valkey was not ready after {_START_SECONDS:g} s (log: {self.log_file})"
                )
        return False

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)
        if not self._exited.wait(_STOP_SECONDS):
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._exited.wait()

    def _port_was_taken(self) -> bool:
        return "in use" in self._log_text()

    def _last_words(self) -> str:
        warnings = [line.rpartition(" # ")[2] for line in self._log_text().splitlines() if " # " in line]
        return "; ".join(warnings[-2:]) or "it wrote no log"

    def _log_text(self) -> str:
        try:
            return self.log_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def mortal_command(command: list[str]) -> list[str]:
    """On Linux: the kernel kills the program when the thread that starts it ends. Elsewhere: the command as it is."""
    if sys.platform != "linux":
        return command
    return [sys.executable, "-I", "-S", str(Path(launcher.__file__)), "pdeathsig-kill", str(os.getpid()), *command]


def _arguments(directory: Path, port: int, log_file: Path) -> list[str]:
    options = {
        "bind": "127.0.0.1",
        "port": str(port),
        "dir": str(directory),
        "logfile": str(log_file),
        "daemonize": "no",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        # The log must never lose a message to make room: appends fail instead, and are retried.
        "maxmemory-policy": "noeviction",
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers_ping(port: int) -> bool:
    """False also while it loads its data (-LOADING)."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
            link.sendall(b"PING\r\n")
            return link.recv(64).startswith(b"+PONG")
    except OSError:
        return False


__all__ = ["EmbeddedServer", "LaunchMode"]
