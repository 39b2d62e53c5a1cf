"""Servers of other versions: Debian's redis-server where it is installed, images where a Docker engine answers."""

import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import redis

from loadtest.processes import free_port

PROGRAM: Final = "redis-server"
"""As the distribution has it: Debian 12 has Redis 7.0."""
IMAGES: Final = ("redis:7", "redis:8", "valkey/valkey:8", "valkey/valkey:9")
KINDS: Final = (PROGRAM, *IMAGES)
READY_SECONDS: Final = 60.0
_PORT: Final = 6379


class NotHere(Exception):
    """Says what is missing."""


@dataclass(frozen=True, slots=True)
class Found:
    """One that runs."""

    kind: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def admin(self) -> Any:
        return redis.Redis(host=self.host, port=self.port, socket_timeout=10, decode_responses=True)


def start(kind: str, folder: Path, stack: ExitStack) -> Found:
    """Ended by the stack. Raises NotHere."""
    found = _start_program(folder, stack) if kind == PROGRAM else _start_image(kind, stack)
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with suppress(redis.RedisError), found.admin() as client:
            client.ping()
            return found
        assert time.monotonic() < deadline, f"{kind} does not answer"
        time.sleep(0.02)


def follow(replica: Found, primary: Found) -> None:
    """Returns when it is a replica in step. Only for servers that see each other."""
    with replica.admin() as client:
        client.replicaof(primary.host, primary.port)
        deadline = time.monotonic() + READY_SECONDS
        while client.info("replication")["master_link_status"] != "up":
            assert time.monotonic() < deadline, "the replica does not follow"
            time.sleep(0.02)


def _start_program(folder: Path, stack: ExitStack) -> Found:
    program = shutil.which(PROGRAM)
    if program is None:
        raise NotHere(f"no {PROGRAM} on PATH")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    process = subprocess.Popen(
        [
            program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
            "--repl-diskless-sync-delay", "0",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip

    def end() -> None:
        process.kill()
        process.wait()

    stack.callback(end)
    return Found(PROGRAM, "127.0.0.1", port)


def _start_image(image: str, stack: ExitStack) -> Found:
    if not _engine_answers():
        raise NotHere("no Docker engine answers")
    from testcontainers.core.container import DockerContainer

    container = DockerContainer(image).with_exposed_ports(_PORT)
    try:
        container.start()
    except Exception as exc:  # whatever its client raises: a registry that is out of reach is not our fault
        raise NotHere(f"{image} cannot be started ({type(exc).__name__})") from exc
    stack.callback(container.stop)
    return Found(image, container.get_container_host_ip(), int(container.get_exposed_port(_PORT)))


@cache
def _engine_answers() -> bool:
    """Asked without its client, which leaves its socket open when nobody answers."""
    where = urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    is_local = where.scheme == "unix"
    with socket.socket(socket.AF_UNIX if is_local else socket.AF_INET) as link, suppress(OSError):
        link.settimeout(5)
        link.connect(where.path if is_local else (where.hostname or "127.0.0.1", where.port or 2375))
        link.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
        return b" 200 " in link.recv(64)
    return False


__all__ = ["KINDS", "PROGRAM", "Found", "NotHere", "follow", "start"]
