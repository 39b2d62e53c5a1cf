"""`python -m loadtest.storm`: 2,000 SDK clients lose their only gateway and come back; prints what that was like."""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from loadtest.storm.storm import Figures, Storm


def show(figures: Figures) -> None:
    live = figures.live_seconds
    print(f"clients                 {figures.clients}")
    print(f"no gateway for          {figures.down_seconds:.1f} s")
    print(f"attempts a second       {' '.join(str(count) for count in figures.per_second)}")
    print(f"in the first second     {' '.join(str(count) for count in figures.slots)}")
    print(f"due in it               {' '.join(str(count) for count in figures.due_slots)}")
    print(f"most of a tenth         {figures.most_of_a_slot:.1%} of the attempts of the first second")
    print(f"most admitted           {figures.most_admitted} a second")
    print(
        f"outcomes                {dict(figures.outcomes)}, {figures.refused_clients} clients were told to come later"
    )
    print(f"not ready               {figures.unready_looks} looks")
    print(f"channels at the end     {dict(figures.channels)}")
    if live:
        middle, late = live[len(live) // 2], live[int(len(live) * 0.99)]
        print(f"live again after        {middle:.1f} s (half), {late:.1f} s (99 %), {live[-1]:.1f} s (all)")
    for problem in figures.problems():
        print(f"NOT KEPT: {problem}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m loadtest.storm", description=__doc__)
    parser.add_argument("--clients", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="the figures as one line of JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(Storm(Path(folder), arguments.clients, arguments.processes).blow())
    if arguments.json:
        live = figures.live_seconds
        print(
            json.dumps(
                {
                    "reconnect_most_of_a_slot": figures.most_of_a_slot,
                    "reconnect_all_live_seconds": live[-1] if live else None,
                    "reconnect_most_admitted_per_second": figures.most_admitted,
                    "attempts_per_second": figures.per_second,
                    "problems": figures.problems(),
                }
            )
        )
    else:
        show(figures)
    return 1 if figures.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
