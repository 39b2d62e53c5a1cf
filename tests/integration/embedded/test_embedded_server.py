"""The embedded Valkey against the real program: its data stays, it does not, however the owner ends."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from gateway.adapters.embedded import EmbeddedServer
from gateway.adapters.embedded.data_dir import DataDir
from gateway.adapters.embedded.server import LaunchMode
from gateway.domain.operator_error import OperatorError

OWNER = """
import sys, threading
from pathlib import Path
from gateway.adapters.embedded import EmbeddedServer

def start():
    global server
    server = EmbeddedServer.start(Path(sys.argv[1]), mode=sys.argv[2] or None)

# Started by a thread that ends: the server must live on, and die with the process all the same.
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(server.port, server.pid, flush=True)
sys.stdin.read()
if sys.argv[3] == "stop":
    server.stop()
"""


@contextmanager
def owner(data_dir: Path, mode: str = "", end: str = "stop") -> Iterator[tuple["subprocess.Popen[str]", int, int]]:
    """(process, port, server pid) of another process that owns an embedded server."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data_dir), mode, end],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port, pid = map(int, process.stdout.readline().split())
        yield process, port, pid
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def eventually_refused(port: int, seconds: float = 5) -> bool:
    """The server is another process that cannot tell us when it is gone."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return True
        time.sleep(0.02)
    return False


def freeze(pid: int) -> None:
    """Returns when every thread of the process has stopped."""
    os.kill(pid, signal.SIGSTOP)
    while any(stat.read_text().rpartition(") ")[2][0] != "T" for stat in Path(f"/proc/{pid}/task").glob("*/stat")):
        time.sleep(0.001)


@contextmanager
def client(port: int) -> Iterator["redis.Redis"]:
    with redis.Redis(port=port, socket_timeout=5) as connection:
        yield connection


def test_second_start_finds_the_data_again(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path / "data") as server, client(server.port) as connection:
        connection.set("k", "v")

    with EmbeddedServer.start(tmp_path / "data") as server, client(server.port) as connection:
        assert connection.get("k") == b"v"
    assert not server.is_running
    assert eventually_refused(server.port)


def test_server_is_set_up_to_lose_nothing(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server, client(server.port) as connection:
        wanted = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "everysec", "bind": "127.0.0.1"}
        actual = {name: connection.config_get(name)[name] for name in wanted}

    assert wanted == actual


@pytest.mark.parametrize("mode", ["pdeathsig", "guard"])
def test_server_dies_with_a_killed_owner_and_keeps_its_data(tmp_path: Path, mode: str) -> None:
    with owner(tmp_path, mode) as (process, port, _):
        with client(port) as connection:
            for number in range(1_000):
                connection.rpush("acknowledged", number)
        process.kill()
        process.wait()

        assert eventually_refused(port)
    with EmbeddedServer.start(tmp_path) as server, client(server.port) as connection:
        assert connection.llen("acknowledged") == 1_000


@pytest.mark.parametrize("mode", ["pdeathsig", "guard"])
@pytest.mark.parametrize("end", ["stop", "return"])
def test_server_ends_when_its_owner_ends_by_itself(tmp_path: Path, mode: str, end: str) -> None:
    with owner(tmp_path, mode, end) as (process, port, _):
        process.communicate("", timeout=20)

        assert process.returncode == 0
        assert eventually_refused(port)


def test_stopped_server_dies_with_a_killed_owner(tmp_path: Path) -> None:
    with owner(tmp_path) as (process, port, pid):
        freeze(pid)
        process.kill()
        process.wait()

        assert eventually_refused(port)


def test_frozen_server_is_stopped_in_order(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        freeze(server.pid)
        began = time.monotonic()
        server.stop()

    assert time.monotonic() - began < 4
    assert not server.is_running


def test_two_owners_of_one_directory_are_a_clear_error(tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path) as server,
        pytest.raises(
            OperatorError, match=f"is in use by process {os.getpid()}: stop it, or choose another --data-dir"
        ),
    ):
        EmbeddedServer.start(tmp_path)
    assert not server.is_running


def test_frozen_guard_still_ends_the_server(tmp_path: Path) -> None:
    with owner(tmp_path, "guard") as (process, port, guard_pid):
        freeze(guard_pid)
        process.kill()
        process.wait()

        assert eventually_refused(port)


def test_dying_server_of_an_earlier_owner_is_waited_for(tmp_path: Path) -> None:
    leftover = os.open(tmp_path / "server.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(leftover, fcntl.LOCK_EX)
    timer = threading.Timer(0.3, os.close, (leftover,))
    timer.start()

    with EmbeddedServer.start(tmp_path) as server:
        timer.join()
        assert server.is_running


def test_leftover_server_that_does_not_end_is_a_clear_error(tmp_path: Path) -> None:
    leftover = os.open(tmp_path / "server.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(leftover, fcntl.LOCK_EX)
    try:
        with pytest.raises(OperatorError, match="of an earlier start still uses"):
            DataDir.open(tmp_path, wait_seconds=0.1)
    finally:
        os.close(leftover)


def test_crash_of_the_server_is_told_once(tmp_path: Path) -> None:
    told = threading.Event()
    codes: list[int] = []
    with EmbeddedServer.start(tmp_path) as server:
        server.on_exit = lambda code: (codes.append(code), told.set())  # type: ignore[assignment,func-returns-value]
        os.kill(server.pid, signal.SIGKILL)
        assert told.wait(5)

    assert codes == [-signal.SIGKILL]


def test_damaged_data_is_a_clear_error(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        pass
    manifest = next((tmp_path / "valkey").glob("appendonlydir/*.manifest"))
    manifest.write_text("nonsense")

    with pytest.raises(OperatorError, match=r"the embedded Valkey did not start: .+ \(log: .+\)"):
        EmbeddedServer.start(tmp_path)
    assert not server.is_running


def test_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(OperatorError, match="cannot be used"):
        EmbeddedServer.start(tmp_path / "file" / "data")


def test_chosen_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(OperatorError, match="in use"):
            EmbeddedServer.start(tmp_path, port=port)


def test_program_that_cannot_run_is_a_clear_error(tmp_path: Path) -> None:
    modes: list[LaunchMode] = ["pdeathsig", "guard"]
    for mode in modes:
        with pytest.raises(OperatorError, match="did not start"):
            EmbeddedServer.start(tmp_path / "data", program=tmp_path / "absent", mode=mode)
