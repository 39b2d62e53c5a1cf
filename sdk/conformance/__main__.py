"""`python -m sdk.conformance`: every scenario on both SDKs, then real gateways with faults."""

import argparse
import asyncio
import sys

from sdk.conformance.drivers import DriverFailed, programs
from sdk.conformance.runner import chosen, run_and_print
from sdk.conformance.scenario import load
from sdk.conformance.script_log import BadScenario


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sdk.conformance", description=__doc__)
    parser.add_argument("--sdk", action="append", choices=sorted(programs()), help="default: all")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="names or groups; * and ? count")
    parser.add_argument("--short", action="store_true", help="only what `make test` runs")
    parser.add_argument("--jobs", type=int, default=16, help="scenarios at once")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
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
        return 0
    is_passed = True
    for sdk in arguments.sdk or programs():
        wanted = chosen(scenarios, sdk, patterns=arguments.only, is_short=arguments.short)
        try:
            has_passed = asyncio.run(
                run_and_print(programs()[sdk], wanted, arguments.jobs, is_verbose=arguments.verbose)
            )
        except DriverFailed as exc:
            print(f"{exc}\n{sdk}: 0 passed, {len(wanted)} failed")
            has_passed = False
        is_passed = is_passed and has_passed
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main())
