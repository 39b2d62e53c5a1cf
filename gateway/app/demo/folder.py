"""The demo's temporary folder. A demo that was killed leaves its own behind: the next one removes it.

Who lives holds a lock in it, which the kernel lets go however the demo ends; a pid could have been given anew.
"""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

_PREFIX = "relayrouter-demo-"
_LOCK = "owner.lock"


class DemoFolder:
    """`make` once, `remove` once. Blocking, for moments."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls, parent: Path | None = None) -> Self:
        """A new one, after those of dead demos are gone. `parent` None: where temporary files go."""
        parent = parent or Path(tempfile.gettempdir())
        for left in parent.glob(f"{_PREFIX}*"):
            _remove_if_left(left)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Locked before it has its name: nobody ever sees a free lock of a demo that lives.
        draft = path / f"{_LOCK}.new"
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        draft.rename(path / _LOCK)
        return cls(path, lock)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_if_left(folder: Path) -> None:
    """Only our own user's, and only with a lock that nobody holds."""
    with suppress(OSError):
        about = folder.lstat()
        if folder.is_symlink() or about.st_uid != os.getuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
        finally:
            os.close(lock)


__all__ = ["DemoFolder"]
