"""How much memory there is and how much is taken: of the container (cgroup v2 or v1), else of the process (/proc).

Reads one to three small files a call; chooses where once. Neither there (macOS): unknown, and nothing depends on it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.domain.admission.pressure import Memory

_CGROUPS: Final = Path("/sys/fs/cgroup")
_PROC: Final = Path("/proc/self")
UNKNOWN: Final = Memory(0, 0)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A version of control groups."""

    mount: str
    """Below /sys/fs/cgroup."""
    limit: str
    used: str
    caches: tuple[str, ...]
    """What memory.stat calls pages of files: the kernel takes them back before it kills anybody."""


_V1: Final = _Kind(
    "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")
)
_V2: Final = _Kind("", "memory.max", "memory.current", ("active_file", "inactive_file"))
_NO_LIMIT_BYTES: Final = 1 << 60
"""Version 1 has no word for "none", but the largest multiple of a page."""


def memory_reader(limit_bytes: int = 0, *, cgroups: Path = _CGROUPS, proc: Path = _PROC) -> Callable[[], Memory]:
    """`limit_bytes` above 0: compare the process's own memory with that, whatever the container may."""
    if not limit_bytes:
        kind, own = _group_of(proc)
        folder = _limited_folder(kind, cgroups / kind.mount, own)
        if folder is not None:
            return lambda: _of_container(kind, folder)
    return lambda: _of_process(proc, limit_bytes)


def _group_of(proc: Path) -> tuple[_Kind, str]:
    """The version that keeps account of memory here, and the process's group in it."""
    try:
        lines = (proc / "cgroup").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return _V2, ""
    # On machines with both, the controller of memory is with the one that names it.
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        if "memory" in controllers.split(","):
            return _V1, path
    return _V2, next((line[3:] for line in lines if line.startswith("0::")), "")


def _limited_folder(kind: _Kind, mount: Path, own: str) -> Path | None:
    """The process's own group, or the nearest above it, that has a limit."""
    if not own:
        return None
    folder = mount / own.lstrip("/")
    # In a container the path may be that on the host, or lead out of what is mounted: then the mount is its own group.
    candidates = [folder, *folder.parents] if mount in (folder, *folder.parents) else [mount]
    for candidate in candidates:
        if _limit_of(kind, candidate):
            return candidate
        if candidate == mount:
            return None
    return None


def _limit_of(kind: _Kind, folder: Path) -> int:
    """0: none."""
    limit_bytes = _number(folder / kind.limit)
    return limit_bytes if limit_bytes < _NO_LIMIT_BYTES else 0


def _of_container(kind: _Kind, folder: Path) -> Memory:
    used_bytes, limit_bytes = _number(folder / kind.used), _limit_of(kind, folder)
    if not used_bytes or not limit_bytes:
        return UNKNOWN
    return Memory(max(0, used_bytes - _cached_bytes(kind, folder)), limit_bytes)


def _cached_bytes(kind: _Kind, folder: Path) -> int:
    try:
        lines = (folder / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    pairs = (line.partition(" ") for line in lines)
    return sum(int(value) for name, _, value in pairs if name in kind.caches and value.isdigit())


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
