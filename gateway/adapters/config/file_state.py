"""Whether a file has changed: edited in place, renamed over, or a ConfigMap's or Secret's `..data` swapped.

Asks the file system and needs no notices of it, so it works on every kind of volume.
"""

from pathlib import Path
from typing import NamedTuple


class FileState(NamedTuple):
    """Of the file that a path leads to through all its links."""

    target: str
    inode: int
    mtime_ns: int
    size_bytes: int


def file_state(path: Path) -> FileState | None:
    """None: it is not there, or its links lead nowhere. Blocks."""
    try:
        target = path.resolve(strict=True)
        state = target.stat()
    except (OSError, RuntimeError):  # until Python 3.13 a loop of links is a RuntimeError
        return None
    return FileState(str(target), state.st_ino, state.st_mtime_ns, state.st_size)


__all__ = ["FileState", "file_state"]
