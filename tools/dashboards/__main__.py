"""Writes dashboards and rules; `--check` only tells if they are fresh."""

import argparse
import sys
from pathlib import Path
from typing import Final

from tools.dashboards import grafana
from tools.dashboards.alert import rule_file
from tools.dashboards.alerts import GROUPS
from tools.dashboards.boards import BOARDS

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "deploy" / "helm" / "relayrouter"


def wanted_files() -> dict[Path, str]:
    dashboards = {CHART / "dashboards" / f"{board.name}.json": grafana.text(board) for board in BOARDS}
    return dashboards | {CHART / "rules" / "alerts.yaml": rule_file(GROUPS)}


def stale_files() -> list[Path]:
    """Those that differ, are missing, or belong to no board any more."""
    wanted = wanted_files()
    there = {*(CHART / "dashboards").glob("*"), *(CHART / "rules").glob("*")}
    return sorted(
        path
        for path in there | set(wanted)
        if path not in wanted or not path.exists() or path.read_text(encoding="utf-8") != wanted[path]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tools.dashboards")
    parser.add_argument("--check", action="store_true", help="exit 1 when a file is stale, write nothing")
    stale, wanted = stale_files(), wanted_files()
    if parser.parse_args().check:
        if stale:
            names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
            print(f"stale: {names}; run `make docs`", file=sys.stderr)
        return int(bool(stale))
    for path in stale:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
