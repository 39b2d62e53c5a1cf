"""`python -m tools.chart manifests [--check]`: deploy/k8s from the chart's defaults. Needs Helm (tools/helm.py)."""

import argparse
import sys

from tools.chart.manifests import FOLDER, plain_manifests
from tools.helm import found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chart", description=__doc__)
    parser.add_argument("command", choices=("manifests",))
    parser.add_argument("--check", action="store_true", help="exit 1 when a file is stale, write nothing")
    is_check = parser.parse_args().check
    helms = found()
    if not helms:
        print("no Helm: put it on PATH, or run `python tools/helm.py install`", file=sys.stderr)
        return 2
    wanted = plain_manifests(helms[min(helms)])
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if stale and is_check:
        print(f"stale in deploy/k8s: {', '.join(stale)}; run `python -m tools.chart manifests`", file=sys.stderr)
        return 1
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
