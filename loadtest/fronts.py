"""nginx, Envoy and HAProxy as child processes in front of gateways, with the configuration files that we publish.

Must never run another configuration than deploy/proxies/*: only addresses and, where a test asks, times are put in.
"""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from loadtest.processes import Gateway, free_port

CONFIGURATIONS: Final = Path(__file__).resolve().parent.parent / "deploy" / "proxies"
FILES: Final = {"nginx": "nginx.conf", "envoy": "envoy.yaml", "haproxy": "haproxy.cfg"}
_READY_SECONDS: Final = 20.0
_END_SECONDS: Final = 10.0


def program(kind: str) -> str | None:
    """Its binary: beside this Python, on PATH, or where Debian keeps it; None where it is not installed."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"))
    return shutil.which(kind, path=places)


class Front:
    """One proxy. Start once, reload any time, end once."""

    def __init__(self, kind: str, gateways: Sequence[Gateway], folder: Path, changes: Mapping[str, str]) -> None:
        """`changes`: text of the published file -> what stands there instead, e.g. shorter times."""
        self.kind = kind
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._gateways = gateways
        self._folder = folder
        self._changes = changes
        self._process: asyncio.subprocess.Process | None = None
        self._epoch = 0

    @property
    def log_path(self) -> Path:
        return self._folder / f"{self.kind}.log"

    async def start(self) -> "Front":
        self._folder.mkdir(parents=True, exist_ok=True)
        self._path.write_text(self._configuration(), encoding="utf-8")
        await self._spawn(*self._command())
        await self._until_it_listens()
        return self

    async def reload(self) -> None:
        """What an operator's change of the configuration does: new workers take over, old connections are cut soon."""
        match self.kind:
            case "nginx":
                self._signal(signal.SIGHUP)
            case "haproxy":
                self._signal(signal.SIGUSR2)
            case _:
                # Envoy takes configuration without a reload; what cuts its connections is a restart.
                await self.end()
                await self._spawn(*self._command())
                await self._until_it_listens()

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
        except TimeoutError:
            pass
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()

    # ---- the process -------------------------------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return self._folder / FILES[self.kind]

    def _command(self) -> Sequence[str]:
        binary = program(self.kind)
        assert binary is not None, f"{self.kind} is not installed"
        match self.kind:
            case "nginx":
                folder = self._folder.resolve()
                return (binary, "-p", str(folder), "-e", str(self.log_path), "-c", str(self._path.resolve()),
                        "-g", f"daemon off; pid {folder}/nginx.pid; user root;")  # fmt: skip
            case "haproxy":
                return (binary, "-W", "-db", "-f", str(self._path))
            case _:
                return (binary, "-c", str(self._path), "--disable-hot-restart", "--concurrency", "1", "-l", "warning")

    async def _spawn(self, *command: str) -> None:
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def _signal(self, which: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, which)

    async def _until_it_listens(self) -> None:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                assert self._process is not None
                assert self._process.returncode is None, f"{self.kind} ended: {self.log_path.read_text()[-2000:]}"
                with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                    return
                await asyncio.sleep(0.05)

    # ---- the configuration -------------------------------------------------------------------------------------

    def _configuration(self) -> str:
        text = (CONFIGURATIONS / FILES[self.kind]).read_text(encoding="utf-8")
        for old, new in self._changes.items():
            assert old in text, f"{FILES[self.kind]} has no `{old}`"
            text = text.replace(old, new)
        public = [urlsplit(gateway.url).port for gateway in self._gateways]
        admin = [urlsplit(gateway.admin_url).port for gateway in self._gateways]
        for number in range(len(re.findall(r"gateway-\d+[:,]", text))):
            if number >= len(self._gateways):
                break
            text = text.replace(f"gateway-{number}:8080 port 9090", f"127.0.0.1:{public[number]} port {admin[number]}")
            text = text.replace(f"gateway-{number}:8080", f"127.0.0.1:{public[number]}")
            text = text.replace(
                f"{{address: gateway-{number}, port_value: 8080}}}}\n"
                "                  health_check_config: {port_value: 9090}",
                f"{{address: 127.0.0.1, port_value: {public[number]}}}}}\n"
                f"                  health_check_config: {{port_value: {admin[number]}}}",
            )
        text = text.replace("maxconn 40000", "maxconn 2000")  # a test machine may have fewer file descriptors
        text = re.sub(r"listen 8000;", f"listen 127.0.0.1:{self.port};", text)
        text = re.sub(r"bind :8000", f"bind 127.0.0.1:{self.port}", text)
        text = text.replace("address: 0.0.0.0, port_value: 8000", f"address: 127.0.0.1, port_value: {self.port}")
        assert "gateway-0:8080" not in text, "an address was not put in"
        return text


__all__ = ["CONFIGURATIONS", "FILES", "Front", "program"]
