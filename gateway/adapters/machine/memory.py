"""How much memory there is and how much is taken: of the container (cgroup v2), else of the process (/proc).

Reads one to three small files a call; chooses where once. Neither there (macOS): unknown, and nothing depends on it.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gateway.domain.admission.pressure import Memory

_CGROUPS: Final = Path("/sys/fs/cgroup")
_PROC: Final = Path("/proc/self")
_CACHES: Final = ("active_file", "inactive_file")
"""Of files: the kernel takes it back before it kills anybody."""
UNKNOWN: Final = Memory(0, 0)


def memory_reader(limit_bytes: int = 0, *, cgroups: Path = _CGROUPS, proc: Path = _PROC) -> Callable[[], Memory]:
    """`limit_bytes` above 0: compare the process's own memory with that, whatever the container may."""
    if not limit_bytes:
        folder = _limited_folder(cgroups, proc)
        if folder is not None:
            return lambda: _of_container(folder)
    return lambda: _of_process(proc, limit_bytes)


def _limited_folder(cgroups: Path, proc: Path) -> Path | None:
    """The process's own group, or the nearest above it, that has a limit."""
    try:
        lines = (proc / "cgroup").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    if own is None:
        return None
    folder = cgroups / own.lstrip("/")
    # In a namespace of its own the path may lead out of what is mounted.
    candidates = [folder, *folder.parents] if cgroups in (folder, *folder.parents) else [cgroups]
    for candidate in candidates:
        if _limit_of(candidate):
            return candidate
        if candidate == cgroups:
            return None
    return None


def _limit_of(folder: Path) -> int:
    """0: none."""
    return _number(folder / "memory.max")


def _of_container(folder: Path) -> Memory:
    used_bytes, limit_bytes = _number(folder / "memory.current"), _limit_of(folder)
    if not used_bytes or not limit_bytes:
        return UNKNOWN
    return Memory(max(0, used_bytes - _cached_bytes(folder)), limit_bytes)


def _cached_bytes(folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    pairs = (line.partition(" ") for line in lines)
    return sum(int(value) for name, _, value in pairs if name in _CACHES and value.isdigit())


def _of_process(proc: Path, limit_bytes: int) -> Memory:
    try:
        pages = (proc / "statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return UNKNOWN
    return Memory(int(pages) * os.sysconf("SC_PAGE_SIZE"), limit_bytes) if pages.isdigit() else UNKNOWN


def _number(path: Path) -> int:
    """0: it is not there, or says `max`."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError:
        return 0
    return int(text) if text.isdigit() else 0


__all__ = ["UNKNOWN", "memory_reader"]
