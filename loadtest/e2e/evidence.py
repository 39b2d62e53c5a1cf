"""docs/evidence.md: what a full run on a real cluster found, with the date and the versions of all that took part."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gateway import __version__
from loadtest.e2e.images import Release
from loadtest.e2e.report import Row, table
from loadtest.e2e.tool import ROOT, CommandFailed, Tool, run

PAGE: Final = ROOT / "docs" / "evidence.md"
BEGIN: Final = "<!-- written by `make e2e` -->"
END: Final = "<!-- end -->"


def write_evidence(rows: Sequence[Row], versions: Mapping[str, str], page: Path = PAGE) -> None:
    page.write_text(with_evidence(page.read_text(encoding="utf-8"), evidence(rows, versions)), encoding="utf-8")


def evidence(rows: Sequence[Row], versions: Mapping[str, str]) -> str:
    told = "\n".join(f"- {name}: {value}" for name, value in versions.items())
    return f"{told}\n\n{table(rows)}"


def with_evidence(text: str, found: str) -> str:
    """The page with this between its marks. Raises ValueError where it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"docs/evidence.md has no `{BEGIN}` and `{END}`")
    return f"{before}{BEGIN}\n{found}{END}{after}"


async def versions_of(tool: Tool) -> dict[str, str]:
    """Asked while the cluster is up."""
    release = Release.read()
    kubernetes = json.loads(await tool.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "RelayRouter": f"{__version__}, commit {await _commit()}; the previous one: {release.version}, "
        f"commit {release.commit[:12]}",
        "Kubernetes": kubernetes.removeprefix("v"),
        "Helm": (await tool.helm("version", "--template", "{{.Version}}")).strip().removeprefix("v"),
    }


async def _commit() -> str:
    try:
        head = (await run(["git", "rev-parse", "--short=12", "HEAD"], folder=ROOT)).strip()
        changed = (await run(["git", "status", "--porcelain", "--untracked-files=no"], folder=ROOT)).strip()
    except (CommandFailed, OSError):
        return "unknown"
    return f"{head} with changes" if changed else head


__all__ = ["evidence", "versions_of", "with_evidence", "write_evidence"]
