"""Fills /opt/relayrouter in the build stage: libraries, the gateway, the command, all compiled. Needs no shell.

Libraries come from /src/site where that was made beforehand (a base without pip, a build without network),
else from the registry, with the hashes of requirements/image.txt.
"""

import compileall
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path("/src")
COMMAND = """#!/usr/bin/env python3
import sys

from gateway.cli.app import main

sys.exit(main())
"""


def main(target: Path) -> int:
    site, prepared = target / "site", SOURCE / "site"
    if prepared.is_dir():
        shutil.copytree(prepared, site)
    else:
        _install(site)
    shutil.copytree(SOURCE / "gateway", site / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(site / "bin", ignore_errors=True)
    # Judged by nothing at run time: layers change the files' times, and a read-only image never changes its text.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(str(site), quiet=2, invalidation_mode=mode, workers=0)
    command = target / "bin" / "relayrouter"
    command.parent.mkdir()
    command.write_text(COMMAND, encoding="utf-8")
    command.chmod(0o755)
    shutil.copy(SOURCE / "init.py", target / "init.py")
    return 0


def _install(site: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--no-compile", "--disable-pip-version-check"]
    locked = ["--only-binary", ":all:", "--require-hashes", "--requirement", str(SOURCE / "image.txt")]
    subprocess.run([*pip, *locked, "--target", str(site)], check=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
