"""docs/evidence.md: what a full run on a real cluster found, with the date and the versions of all that took part."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
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


def amend_evidence(rows: Sequence[Row], versions: Mapping[str, str], page: Path = PAGE) -> None:
    """After a run of single steps with all streams: their rows in the place of those of the last full run, each with
    its own date and commit."""
    page.write_text(with_rows(page.read_text(encoding="utf-8"), rows, versions), encoding="utf-8")


def with_rows(text: str, rows: Sequence[Row], versions: Mapping[str, str]) -> str:
    """The page with these rows. Raises ValueError where it has no marks."""
    lines = _between(text).strip("\n").splitlines()
    run_alone = f"run by itself {versions['date']}, {versions['RelayRouter'].partition(';')[0]}"
    for row in rows:
        line = table([replace(row, note=f"{row.note} ({run_alone})")]).splitlines()[-1]
        places = [number for number, old in enumerate(lines) if old.startswith(f"| {row.step} |")]
        if places:
            lines[places[0]] = line
        else:
            lines.append(line)
    return with_evidence(text, "\n".join(lines) + "\n")


def evidence(rows: Sequence[Row], versions: Mapping[str, str]) -> str:
    told = "\n".join(f"- {name}: {value}" for name, value in versions.items())
    return f"{told}\n\n{table(rows)}"


def with_evidence(text: str, found: str) -> str:
    """The page with this between its marks. Raises ValueError where it has none."""
    _between(text)
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{found}{END}{after}"


def _between(text: str) -> str:
    _, begin, rest = text.partition(BEGIN)
    found, end, _ = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"docs/evidence.md has no `{BEGIN}` and `{END}`")
    return found


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


__all__ = ["amend_evidence", "evidence", "versions_of", "with_evidence", "with_rows", "write_evidence"]
