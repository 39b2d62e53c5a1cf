"""One primary, two replicas, three sentinels: real processes with short time-outs, that a test can kill and freeze."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import redis

from loadtest.processes import Server, free_port, valkey_program
from loadtest.stage import Stage

SERVICE = "mymaster"
READY_SECONDS = 20.0
_PATIENT_MS = 60_000
"""A busy machine lets a server be silent for a second; nobody is to be replaced but whom the test kills or freezes."""
_DOWN_AFTER_MS = 1_000


@dataclass(slots=True)
class Sentinel:
    folder: Path
    primary_port: int
    quorum: int = 2
    options: tuple[str, ...] = ()
    """Lines of its configuration."""
    port: int = field(default_factory=free_port)
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> "Sentinel":
        """Returns when it listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "sentinel.conf"
        config.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nlogfile {self.folder}/sentinel.log\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary_port} {self.quorum}\n"
            f"sentinel down-after-milliseconds {SERVICE} {_PATIENT_MS}\n"
            f"sentinel failover-timeout {SERVICE} 6000\n"
            f"sentinel parallel-syncs {SERVICE} 2\n" + "".join(f"{line}\n" for line in self.options),
            encoding="utf-8",
        )
        self.process = subprocess.Popen(
            [valkey_program(), str(config), "--sentinel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return self
            time.sleep(0.01)
        raise AssertionError(f"the sentinel did not start: {config}")

    def client(self) -> "redis.Redis":
        return redis.Redis(
            port=self.port, socket_timeout=2, socket_connect_timeout=2, decode_responses=True, protocol=2
        )

    def primary_port_now(self) -> int | None:
        """None while it does not answer."""
        try:
            with self.client() as client:
                _, port = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
                return int(port)
        except (redis.RedisError, TypeError):
            return None

    def be_patient_for(self, milliseconds: int) -> None:
        with self.client() as client:
            client.execute_command("SENTINEL", "SET", SERVICE, "down-after-milliseconds", milliseconds)

    def sees(self) -> tuple[int, int]:
        """(other sentinels, replicas) that it knows to be well."""
        try:
            with self.client() as client:
                info = dict(zip(*[iter(client.execute_command("SENTINEL", "MASTER", SERVICE))] * 2, strict=True))
        except (redis.RedisError, TypeError):
            return 0, 0
        return int(info["num-other-sentinels"]), int(info["num-slaves"])

    def freeze(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


class Fleet:
    """`primary` is who it was at the start; `promoted` who the sentinels say it is."""

    def __init__(self, primary: Server, replicas: list[Server], sentinels: list[Sentinel]) -> None:
        self.primary = primary
        self.replicas = replicas
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        places = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{places}/{SERVICE}/0"

    async def promoted(self) -> Server:
        """The primary is dead or stands still: the sentinels notice it, and this waits until one names another."""
        await self._be_patient_for(_DOWN_AFTER_MS)
        promoted = await self._named()
        await self._be_patient_for(_PATIENT_MS)
        return promoted

    async def _be_patient_for(self, milliseconds: int) -> None:
        for sentinel in self.sentinels:
            await asyncio.to_thread(sentinel.be_patient_for, milliseconds)

    async def _named(self) -> Server:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            for sentinel in self.sentinels:
                port = await asyncio.to_thread(sentinel.primary_port_now)
                found = [replica for replica in self.replicas if replica.port == port]
                if found:
                    return found[0]
            await asyncio.sleep(0.02)
        raise AssertionError("no replica was promoted")

    async def switch(self, *how: str) -> None:
        """As an operator does it; returns when another server is the primary. `how`: COORDINATED, or nothing."""
        servers = [self.primary, *self.replicas]
        with self.sentinels[0].client() as client:
            # Refused while an earlier one has not ended.
            deadline = time.monotonic() + READY_SECONDS
            while True:
                try:
                    client.execute_command("SENTINEL", "FAILOVER", SERVICE, *how)
                    break
                except redis.ResponseError:
                    assert time.monotonic() < deadline, "the sentinel does not fail over"
                    await asyncio.sleep(0.2)
        promoted = await self._named()
        self.primary, self.replicas = promoted, [server for server in servers if server is not promoted]

    async def ready(self) -> "Fleet":
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            seen = [await asyncio.to_thread(sentinel.sees) for sentinel in self.sentinels]
            if all(view == (len(self.sentinels) - 1, len(self.replicas)) for view in seen):
                return self
            await asyncio.sleep(0.05)
        raise AssertionError("the sentinels did not find each other")


@asynccontextmanager
async def running_fleet(stage: Stage) -> AsyncIterator[Fleet]:
    primary, *replicas = [stage.server() for _ in range(3)]
    for replica in replicas:
        await asyncio.to_thread(replica.follow, primary)
    sentinels = [Sentinel(stage.folder / f"sentinel-{number}", primary.port) for number in range(3)]
    try:
        for sentinel in sentinels:
            sentinel.start()
        yield await Fleet(primary, replicas, sentinels).ready()
    finally:
        for sentinel in sentinels:
            sentinel.end()


__all__ = ["SERVICE", "Fleet", "Sentinel", "running_fleet"]
