"""Runs scenarios on an SDK's driver, several at once, and says what failed. Called by __main__ and by the tests."""

import asyncio
import fnmatch
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from sdk.conformance.drivers import Driver, Program
from sdk.conformance.play import Play, Result
from sdk.conformance.scenario import Scenario

TRANSCRIPT_LINES: Final = 80
SCENARIO_SECONDS: Final = 120.0


def chosen(
    scenarios: Sequence[Scenario], sdk: str, *, patterns: Sequence[str] = (), is_short: bool = False
) -> list[Scenario]:
    """Those of this SDK that match any of the patterns (`*` and `?`; also by group); without patterns all."""
    return [
        scenario
        for scenario in scenarios
        if scenario.only in (None, sdk)
        and (scenario.is_short or not is_short)
        and (
            not patterns or any(fnmatch.fnmatch(text, p) for p in patterns for text in (scenario.name, scenario.group))
        )
    ]


async def run(
    program: Program, scenarios: Sequence[Scenario], jobs: int, on_result: Callable[[Result, Driver], None]
) -> list[Result]:
    """Raises DriverFailed when there is no driver to talk to."""
    results: list[Result] = []
    gate = asyncio.Semaphore(jobs)
    with tempfile.TemporaryDirectory() as folder:
        async with Driver(program) as driver:

            async def one(number: int, scenario: Scenario) -> None:
                async with gate:
                    play = Play(scenario, driver, f"{number}", Path(folder))
                    try:
                        async with asyncio.timeout(SCENARIO_SECONDS):
                            result = await play.run()
                    except TimeoutError:
                        result = Result(scenario, f"not over after {SCENARIO_SECONDS} s", SCENARIO_SECONDS, [])
                    results.append(result)
                    on_result(result, driver)

            async with asyncio.TaskGroup() as group:
                for number, scenario in enumerate(scenarios, 1):
                    group.create_task(one(number, scenario))
            if driver.has_ended.is_set():
                results.append(_dead_driver(scenarios[0], driver))
                on_result(results[-1], driver)
    return results


def _dead_driver(scenario: Scenario, driver: Driver) -> Result:
    return Result(scenario, f"the driver ended in the middle: {driver.tail()}", 0, [])


def explain(sdk: str, result: Result, *, lines: int = TRANSCRIPT_LINES) -> str:
    """One line that says what failed, and the transcript below it."""
    name = f"{result.scenario.group}: {result.scenario.name}"
    if result.problem is None:
        return f"{sdk}: passed: {name} ({result.seconds:.1f} s)"
    transcript = [f"    {line[:400]}" for line in result.transcript[-lines:]]
    return "\n".join([f"{sdk}: FAILED: {name}: {result.problem}", *transcript])


async def run_and_print(
    program: Program, scenarios: Sequence[Scenario], jobs: int, *, is_verbose: bool = False
) -> tuple[int, int]:
    """(passed, failed). Prints what failed."""

    def show(result: Result, driver: Driver) -> None:
        if result.problem is not None:
            print(explain(program.name, result), flush=True)
            if driver.stderr:
                print(f"    the driver's stderr:\n{driver.tail()}", flush=True)
        elif is_verbose:
            print(explain(program.name, result), *result.transcript, sep="\n    ", flush=True)

    results = await run(program, scenarios, jobs, show)
    failed = sum(result.problem is not None for result in results)
    return len(results) - failed, failed


__all__ = ["chosen", "explain", "run", "run_and_print"]
