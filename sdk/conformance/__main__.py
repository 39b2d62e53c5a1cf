"""`python -m sdk.conformance`: every scenario on both SDKs; with `--real` also real gateways with faults."""

import argparse
import asyncio
import random
import sys
from collections.abc import Sequence

from sdk.conformance.drivers import DriverFailed, Program, programs
from sdk.conformance.real.faults import FAULTS
from sdk.conformance.real.run import chosen_faults, run_real
from sdk.conformance.runner import chosen, run_and_print
from sdk.conformance.scenario import Scenario, load
from sdk.conformance.script_log import BadScenario


async def try_out(
    program: Program, scenarios: Sequence[Scenario], faults: Sequence[str], arguments: argparse.Namespace
) -> bool:
    """True: nothing failed. The last line that it prints says how many passed."""
    passed = failed = 0
    try:
        if scenarios:
            passed, failed = await run_and_print(program, scenarios, arguments.jobs, is_verbose=arguments.verbose)
        if faults:
            more = await run_real(program, faults, arguments.seed, is_verbose=arguments.verbose)
            passed, failed = passed + more[0], failed + more[1]
    except DriverFailed as exc:
        print(exc)
        failed = len(scenarios) + len(faults) - passed
    print(f"{program.name}: {passed} passed, {failed} failed", flush=True)
    return failed == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sdk.conformance", description=__doc__)
    parser.add_argument("--sdk", action="append", choices=sorted(programs()), help="default: all")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="names, groups or faults; * and ? count"
    )
    parser.add_argument("--short", action="store_true", help="only what `make test` runs")
    parser.add_argument("--real", action="store_true", help="real gateways with faults as well")
    parser.add_argument("--jobs", type=int, default=16, help="scenarios at once")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31), help="of the real faults")
    parser.add_argument("--list", action="store_true", help="name the scenarios and faults")
    parser.add_argument("-v", "--verbose", action="store_true", help="transcripts of what passed as well")
    arguments = parser.parse_args()
    try:
        scenarios = load()
    except BadScenario as exc:
        print(exc, file=sys.stderr)
        return 2
    if arguments.list:
        for scenario in scenarios:
            print(f"{scenario.group}: {scenario.name} {list(scenario.covers)}{' short' if scenario.is_short else ''}")
        print(*(f"real: {name}" for name in FAULTS), sep="\n")
        return 0
    faults = chosen_faults(arguments.only) if arguments.real else []
    is_passed = True
    for name in arguments.sdk or programs():
        wanted = chosen(scenarios, name, patterns=arguments.only, is_short=arguments.short)
        is_passed = asyncio.run(try_out(programs()[name], wanted, faults, arguments)) and is_passed
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main())
