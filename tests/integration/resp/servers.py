"""A real server that can be frozen, killed and started again, and a proxy that delays or swallows bytes."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import redis

from gateway.adapters.embedded.program import find_program
from gateway.adapters.resp import Address


class Server:
    """Keeps its port and directory over restarts. Calls block; they take milliseconds."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.port = _free_port()
        self.directory = directory
        self.address = Address.parse(f"redis://127.0.0.1:{self.port}/0")
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        # Blocking and out of band: what the tests do to the server.
        self.admin = redis.Redis(port=self.port, socket_timeout=10, decode_responses=True)

    def start(self) -> None:
        command = [
            str(find_program()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory),
            "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile", "server.log", *self._options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command)
        deadline = time.monotonic() + 20
        while not _listens(self.port):
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(how)
            process.wait(20)
        self.admin.connection_pool.disconnect()

    def restart(self) -> None:
        self.end()
        self.start()

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def kill_clients(self, kind: str) -> int:
        """`kind` as in CLIENT KILL TYPE; ours is spared."""
        return int(self.admin.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as link:
            link.sendall(b"PING\r\n")
            return link.recv(16).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


class _Side(asyncio.Protocol):
    """One end of a proxied connection: what it reads goes to `give`, its end to `end`."""

    give: Callable[[bytes], None]
    end: Callable[[], None]

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        for data in self._early:
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self.give(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.end()

    def write(self, data: bytes) -> None:
        if self.transport is None:
            self._early.append(data)
        else:
            self.transport.write(data)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class Proxy:
    """TCP in front of a server. `delay_seconds` holds for the answers; `is_silent` swallows them, without an end."""

    def __init__(self, server_port: int, delay_seconds: float = 0) -> None:
        self.port = 0
        self.delay_seconds = delay_seconds
        self.is_silent = False
        self.connections = 0
        self._server_port = server_port
        self._sides: list[_Side] = []
        self._connecting: set[asyncio.Task[object]] = set()

    @property
    def address(self) -> Address:
        return Address.parse(f"redis://127.0.0.1:{self.port}/0")

    @asynccontextmanager
    async def running(self, **listen: Any) -> "AsyncIterator[Proxy]":
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(self._accept, "127.0.0.1", 0, **listen)
        self.port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            await asyncio.gather(*self._connecting, return_exceptions=True)
            for side in self._sides:
                side.abort()
            await asyncio.sleep(0.01)  # uvloop ends its transports in a later turn and tells nobody

    def _accept(self) -> _Side:
        loop = asyncio.get_running_loop()
        self.connections += 1
        held: deque[bytes] = deque()

        def deliver() -> None:
            data = held.popleft()
            if not self.is_silent:
                ours.write(data)

        def hold(data: bytes) -> None:
            held.append(data)
            loop.call_later(self.delay_seconds, deliver)

        ours, theirs = _Side(), _Side()
        ours.give, ours.end = theirs.write, theirs.abort
        theirs.give, theirs.end = hold, ours.abort
        self._sides += (ours, theirs)
        connecting = asyncio.ensure_future(loop.create_connection(lambda: theirs, "127.0.0.1", self._server_port))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        return ours


async def stand_still(seconds: float) -> None:
    """This process stops as by SIGSTOP: while it waits for input; its timers are late then."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        over = loop.create_future()

        def stop() -> None:
            time.sleep(seconds)
            loop.remove_reader(ours)
            over.set_result(None)

        loop.add_reader(ours, stop)
        theirs.send(b"x")
        await over


@asynccontextmanager
async def running(forever: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What the owner of tasks does with a `run`."""
    task = asyncio.ensure_future(forever)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
