"""Runs an image's program on the image's files, as a container would: read-only, any user, no shell.

Needs no container engine, but Linux and root. The network and process numbers are the machine's: what it shows is that
the files suffice, the size, the start and the end.
"""

import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.adapters.embedded import EmbeddedServer
from loadtest.processes import free_port
from tools.image.archive import compressed_bytes, layers_of, unpack

MOST_BYTES: Final = 100_000_000
MOST_SECONDS: Final = 2.0
TRIES: Final = 5
ANY_USER: Final = "1000720000"
"""None that the image knows: some clusters choose one for each namespace."""
PROGRAM: Final = ("python3", "-I", "-S", "/opt/relayrouter/init.py", "relayrouter", "serve")
_DEADLINE_SECONDS: Final = 60.0
_INSIDE: Final = (
    # Gone with the namespace. Only /tmp can be written, as in a pod of the chart.
    'mount --bind "$0" "$0" && mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" '
    '&& mount -t tmpfs tmpfs "$0/tmp" && mount -o remount,bind,ro "$0" && exec chroot --userspec="$1:$1" "$0" "${@:2}"'
)


@dataclass(frozen=True, slots=True)
class Trial:
    compressed_bytes: int
    """Of all layers, those of the base included."""
    ready_seconds: float
    """From the start of process 1 until /readyz says 200: the best of five, as the machine may be busy."""
    end_seconds: float
    """From SIGTERM until process 1 is gone, with nobody connected."""
    exit_code: int

    @property
    def problems(self) -> list[str]:
        checks = (
            (self.compressed_bytes <= MOST_BYTES, f"{self.compressed_bytes} bytes compressed, more than {MOST_BYTES}"),
            (self.ready_seconds <= MOST_SECONDS, f"ready after {self.ready_seconds:.2f} s, more than {MOST_SECONDS:g}"),
            (self.exit_code == 0, f"SIGTERM ended it with {self.exit_code}"),
        )
        return [problem for is_good, problem in checks if not is_good]


def try_image(archive: Path) -> Trial:
    """Raises NotAnArchive, and RuntimeError with its last words when the program does not get ready."""
    size = sum(compressed_bytes(layer) for layer in layers_of(archive))
    with tempfile.TemporaryDirectory() as folder, _redis(Path(folder)) as url:
        root = Path(folder) / "root"
        root.mkdir(mode=0o755)
        unpack(archive, root)
        runs = [_run(root, url, Path(folder) / "log") for _ in range(TRIES)]
    ready, end, code = min(runs)
    return Trial(size, ready, end, max(code, *(run[2] for run in runs)))


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    with EmbeddedServer.start(folder / "redis") as server:
        yield server.url


def _run(root: Path, redis_url: str, log: Path) -> tuple[float, float, int]:
    """Seconds to ready, seconds to the end, exit code."""
    public, admin = free_port(), free_port()
    environ = {
        **environment(),
        "RR_REDIS__URL": redis_url,
        "RR_AUTH__MODE": "none",
        "RR_SERVER__HOST": "127.0.0.1",
        "RR_SERVER__PORT": str(public),
        "RR_SERVER__ADMIN_PORT": str(admin),
        "RR_DRAIN__SETTLE_SECONDS": "0",
    }
    command = ["unshare", "--mount", "bash", "-c", _INSIDE, str(root), ANY_USER, *PROGRAM]
    with log.open("w+") as out:
        began = time.monotonic()
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=out, start_new_session=True)  # noqa: S603
        try:
            _wait_until_ready(process, admin, log)
            ready = time.monotonic()
            process.send_signal(signal.SIGTERM)
            code = process.wait(_DEADLINE_SECONDS)
            return ready - began, time.monotonic() - ready, code
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def environment() -> dict[str, str]:
    """What the recipe sets; a test compares them."""
    return {
        "PATH": "/opt/relayrouter/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "PYTHONPATH": "/opt/relayrouter/site",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as response:
                if response.status == 200:
                    return
        except (OSError, urllib.error.URLError):
            time.sleep(0.02)
    raise RuntimeError(f"not ready: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


__all__ = ["MOST_BYTES", "MOST_SECONDS", "PROGRAM", "Trial", "environment", "try_image"]
