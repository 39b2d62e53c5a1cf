"""The demo's gateways: real `relayrouter serve` processes that can be killed, stopped, frozen, and that come back.

Owns the child processes; nothing of them outlives `stop`, nor (on Linux) a kill -9 of the demo.
"""

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.adapters.embedded import mortal_command
from gateway.domain.operator_error import OperatorError

_READY_SECONDS = 20.0
_STOP_SECONDS = 8.0
_RESTART_SECONDS = 0.7
"""A moment in which people see that the gateway is gone."""
_HASTE: Final = {
    "RR_DRAIN__SETTLE_SECONDS": "0.5",
    "RR_DRAIN__WINDOW_SECONDS": "2",
    "RR_REBALANCE__PATIENCE_SECONDS": "1",
    "RR_REBALANCE__REST_SECONDS": "8",
    "RR_REBALANCE__PER_MINUTE": "1500",
    "RR_MEDIA__WINDOW_BYTES": "16384",
}
"""What takes minutes in a cluster that nobody looks at takes seconds here. The window: the relay's 2G line carries six
kilobytes a second, and what is underway on it would be old."""


@dataclass(slots=True)
class GatewayProcess:
    """One place in the cluster; the process in it changes, the port stays."""

    name: str
    port: int = 0
    admin_url: str = ""
    gateway: str = ""
    state: str = "starting"
    process: asyncio.subprocess.Process | None = None
    is_leaving: bool = False
    """Nobody takes its place when it has ended."""

    @property
    def pid(self) -> int | None:
        return None if self.process is None or self.process.returncode is not None else self.process.pid


class Gateways:
    """`count` gateways on one Redis, more or fewer later. `watch` restarts whichever ended, until `stop`."""

    def __init__(
        self, redis_url: str, count: int, log_path: Path, origins: Sequence[str], route_file: Path | None = None
    ) -> None:
        """`origins`: web pages that may connect (the demo's own)."""
        self._redis_url = redis_url
        self._log_path = log_path
        self._environment = os.environ | _HASTE | {"RR_SERVER__ALLOWED_ORIGINS": ",".join(origins)}
        if route_file is not None:
            self._environment |= {"RR_ROUTING__FILE": str(route_file)}
        self._stopping = False
        self.members = [GatewayProcess(f"gateway-{number + 1}") for number in range(count)]

    async def start(self) -> None:
        await asyncio.gather(*(self._spawn(member) for member in self.members))

    @property
    def up(self) -> list[GatewayProcess]:
        return [member for member in self.members if member.state == "up"]

    @property
    def urls(self) -> list[str]:
        """Of all that have a port, for a client that is its own balancer."""
        return [f"http://{host}:{port}" for host, port in self.targets()]

    @property
    def admin_urls(self) -> list[str]:
        return [member.admin_url for member in self.up]

    async def add(self) -> GatewayProcess:
        """One more; returns when it serves. `watch` it. Raises OperatorError."""
        taken = {member.name for member in self.members}
        number = next(number for number in itertools.count(1) if f"gateway-{number}" not in taken)
        member = GatewayProcess(f"gateway-{number}")
        self.members.append(member)
        try:
            await self._spawn(member)
        except OperatorError:
            self.members.remove(member)
            raise
        return member

    def targets(self) -> list[tuple[str, int]]:
        """As a load balancer has them: one that drains gets nobody new. One that is dead or frozen it does not know."""
        return [("127.0.0.1", member.port) for member in self.members if member.port and member.state != "draining"]

    async def watch(self, member: GatewayProcess) -> None:
        """Keep one place filled: when its process ends, a new one takes its port after a moment."""
        while True:
            if member.process is not None:
                await member.process.wait()
            if self._stopping:
                return
            if member.is_leaving:
                self.members.remove(member)
                return
            member.state = "down"
            await asyncio.sleep(_RESTART_SECONDS)
            with suppress(OperatorError):  # while Redis is cut: the next round tries again
                await self._spawn(member)

    def send(self, member: GatewayProcess, what: signal.Signals) -> bool:
        """Send a signal to the process in that place; False when there is none now."""
        process = member.process
        if process is None or process.returncode is not None:
            return False
        with suppress(ProcessLookupError):
            process.send_signal(what)
        if what == signal.SIGSTOP:
            member.state = "frozen"
        elif what == signal.SIGTERM and member.state != "frozen":
            member.state = "draining"
        return True

    def thaw(self, member: GatewayProcess, pid: int | None) -> None:
        """Let the process with that pid go on, if it is still the one in that place."""
        if pid is None or member.pid != pid:
            return
        self.send(member, signal.SIGCONT)
        if member.state == "frozen":
            member.state = "up"

    async def stop(self) -> None:
        self._stopping = True
        running = [m.process for m in self.members if m.process is not None and m.process.returncode is None]
        for process in running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(process.wait() for process in running)), _STOP_SECONDS)

    async def _spawn(self, member: GatewayProcess) -> None:
        arguments = ["serve", "--json", "--auth", "none", "--host", "127.0.0.1", "--redis-url", self._redis_url]
        arguments += ["--port", str(member.port), "--admin-port", "0"]
        environment = self._environment | {"RR_SERVER__GATEWAY_NAME": member.name}
        member.state = "starting"
        with self._log_path.open("ab") as log:
            member.process = await asyncio.create_subprocess_exec(
                *mortal_command([sys.executable, "-m", "gateway", *arguments]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,  # a Ctrl-C at the terminal is for the demo, which ends them
            )
        ready = await self._ready_line(member.process)
        member.port = int(str(ready["url"]).rsplit(":", 1)[1])
        member.admin_url = ready["admin_url"]
        member.gateway = ready["gateway"]
        member.state = "up"

    async def _ready_line(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        if process.stdout is None:
            raise RuntimeError("the gateway was started without a pipe")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _READY_SECONDS)
            ready: dict[str, Any] = json.loads(line)
        except (TimeoutError, ValueError):
            with suppress(ProcessLookupError):
                process.kill()
            raise OperatorError(f"a gateway did not start; the last lines of its log:\n{self._log_end()}") from None
        return ready

    def _log_end(self) -> str:
        return "\n".join(self._log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
