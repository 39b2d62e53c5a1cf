"""`python -m loadtest.simulation`: drains, deaths and scale-outs of clusters from 100 to 10 million connections."""

import argparse
import random
import sys

from rich.console import Console
from rich.table import Table

from loadtest.simulation.cohorts import CohortStorm
from loadtest.simulation.policy import Policy, default_policy
from loadtest.simulation.rolls import roll
from loadtest.simulation.scale_out import scale_out

SIZES = (
    (100, 3),
    (10_000, 3),
    (20_000, 4),
    (100_000, 10),
    (500_000, 50),
    (1_000_000, 100),
    (5_000_000, 1_000),
    (10_000_000, 2_000),
)
DOWN_SECONDS = 10.0
"""How long all gateways are gone in the worst of the cases."""


def main() -> int:
    """1: some second was above its budget, or somebody never came back."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    policy, rng = default_policy(), random.Random(arguments.seed)
    console = Console(width=120)
    problems: list[str] = []
    for table in (_storms(policy, rng, problems), _rolls(policy, rng, problems), _scale_outs(policy, rng, problems)):
        console.print(table)
    console.print(f"admitted by one gateway in any second: at most {policy.admitted_a_second} by its bucket")
    for problem in problems:
        console.print(f"NOT KEPT: {problem}")
    return 1 if problems else 0


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _storms(policy: Policy, rng: random.Random, problems: list[str]) -> Table:
    table = _table(
        "gateways die", "connections", "gateways", "dead", "lost", "attempts", "most a second and gateway",
        "half live s", "all live s",
    )  # fmt: skip
    for clients, gateways in SIZES:
        for dead, alive, down in ((1, gateways - 1, 0.0), (gateways, gateways, DOWN_SECONDS)):
            lost = clients * dead // gateways
            storm = CohortStorm(alive, policy, rng, down)
            storm.lose(lost)
            figures = storm.run()
            if figures.live != lost or figures.most_admitted > policy.admitted_a_second:
                problems.append(f"{clients} on {gateways}, {dead} dead: {figures.live} live, {figures.most_admitted}/s")
            table.add_row(
                *(f"{number:,}" for number in (clients, gateways, dead, lost, figures.attempts.total())),
                str(figures.most_admitted),
                f"{figures.half_live_seconds:.1f}",
                f"{figures.all_live_seconds:.1f}",
            )
    return table


def _rolls(policy: Policy, rng: random.Random, problems: list[str]) -> Table:
    table = _table(
        "all are upgraded, a quarter at a time", "connections", "gateways", "waves",
        "most returns a second and gateway", "most admitted", "refused", "fullest at the end", "done after s",
    )  # fmt: skip
    for clients, gateways in SIZES:
        done = roll(clients, gateways, policy, rng)
        if done.most_admitted > policy.admitted_a_second or done.most_returns > policy.resumes.per_second:
            problems.append(f"a roll of {clients} on {gateways}: {done}")
        table.add_row(
            *(f"{number:,}" for number in (clients, gateways, done.waves)),
            f"{done.most_returns:.1f}",
            str(done.most_admitted),
            str(done.refused),
            f"{done.fullest:,}",
            f"{done.seconds:.0f}",
        )
    return table


def _scale_outs(policy: Policy, rng: random.Random, problems: list[str]) -> Table:
    table = _table("a quarter more gateways", "connections", "gateways", "moves", "most asked a minute", "even after s")
    for clients, gateways in SIZES:
        if gateways > 100:
            continue  # each gateway judges alone: more of them show nothing new
        done = scale_out(clients, gateways, policy, rng)
        if done.most_asked > policy.rebalance.per_minute:
            problems.append(f"a scale-out of {clients} on {gateways}: {done}")
        table.add_row(
            *(f"{number:,}" for number in (clients, gateways, done.moves, done.most_asked)), f"{done.seconds:.0f}"
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
