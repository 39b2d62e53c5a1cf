"""Who may use a data directory: one owner at a time, and only after the previous owner's server is gone."""

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from gateway.domain.operator_error import OperatorError


class DataDir:
    """Holds two locks until `close`.

    `owner.lock` is ours alone: another live process holding it is a clear error. `server.lock` is inherited by the
    server, so the kernel keeps it until the last of us and the server is gone, however either of them ends.
    """

    def __init__(self, path: Path, owner_fd: int, server_fd: int) -> None:
        self.path = path
        self._owner_fd = owner_fd
        self.server_fd = server_fd

    @classmethod
    def open(cls, path: Path, *, wait_seconds: float = 10) -> Self:
        """Waits for a dying server of a previous start. OperatorError when in use or not writable."""
        path = path.absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            owner_fd = _lock_file(path / "owner.lock")
        except OSError as exc:
            raise OperatorError(
                f"the data directory {path} cannot be used ({exc.strerror}): choose another --data-dir"
            ) from exc
        try:
            if not _try_lock(owner_fd):
                owner = os.pread(owner_fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise OperatorError(
                    f"the data directory {path} is in use by process {owner}: stop it, or choose another --data-dir"
                )
            os.ftruncate(owner_fd, 0)
            os.pwrite(owner_fd, f"{os.getpid()}\n".encode(), 0)
            return cls(path, owner_fd, _lock_when_free(path, wait_seconds))
        except BaseException:
            os.close(owner_fd)
            raise

    def close(self) -> None:
        """Once; afterwards another start may use the directory, as soon as the server is gone."""
        os.close(self.server_fd)
        os.close(self._owner_fd)


def _lock_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_when_free(path: Path, wait_seconds: float) -> int:
    fd = _lock_file(path / "server.lock")
    deadline = time.monotonic() + wait_seconds
    while not _try_lock(fd):
        # A blocking flock has no time-out, and the holder is a process that cannot wake us.
        if time.monotonic() > deadline:
            os.close(fd)
            raise OperatorError(
                f"a Valkey server of an earlier start still uses {path} after {wait_seconds:g} s: "
                "end that valkey-server process, or choose another --data-dir"
            )
        time.sleep(0.02)
    return fd
