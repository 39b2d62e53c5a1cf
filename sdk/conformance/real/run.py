"""Runs the real faults on one SDK: one after the other, because each starts servers of its own. Called by __main__."""

import asyncio
import fnmatch
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from loadtest.processes import DidNotEnd, DidNotStart
from loadtest.publisher import PublishFailed
from sdk.conformance.drivers import ROOT, Driver, Program
from sdk.conformance.real.faults import FAULTS
from sdk.conformance.real.scene import Scene
from sdk.conformance.witness import Failed

TRANSCRIPT_LINES = 40
FAULT_SECONDS = 150.0
KEPT = ROOT / "build" / "conformance"


def chosen_faults(patterns: Sequence[str]) -> list[str]:
    """Those whose names match any of the patterns; without patterns all."""
    return [name for name in FAULTS if not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)]


async def run_real(program: Program, wanted: Sequence[str], seed: int, *, is_verbose: bool = False) -> tuple[int, int]:
    """(passed, failed). Prints what failed. Raises DriverFailed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        async with Driver(program) as driver:
            for name in wanted:
                began = time.monotonic()
                problem, transcript = await _one(driver, name, seed, Path(folder) / name)
                seconds = time.monotonic() - began
                if problem is not None:
                    failed += 1
                    shown = transcript[-TRANSCRIPT_LINES:]
                    print(f"{program.name}: FAILED: real: {name}: {problem}", *shown, sep="\n    ", flush=True)
                    _keep(f"{program.name}-{name}", problem, transcript)
                    if driver.stderr:
                        print(f"    the driver's stderr:\n{driver.tail()}", flush=True)
                elif is_verbose:
                    print(f"{program.name}: passed: real: {name} ({seconds:.1f} s)", flush=True)
    return len(wanted) - failed, failed


async def _one(driver: Driver, name: str, seed: int, folder: Path) -> tuple[str | None, list[str]]:
    scene = Scene(folder, seed, driver, name)
    try:
        async with asyncio.timeout(FAULT_SECONDS), scene:
            await FAULTS[name](scene)
            await scene.judge()
    except Failed as exc:
        return str(exc), scene.transcript
    except ExceptionGroup as group:
        return "; ".join(repr(exc) for exc in group.exceptions), scene.transcript
    except (DidNotStart, DidNotEnd, PublishFailed, TimeoutError) as exc:
        return repr(exc), scene.transcript
    return None, []


def _keep(name: str, problem: str, transcript: Sequence[str]) -> None:
    """The whole transcript, for who wants to know what one of the readers did."""
    path = KEPT / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([problem, *transcript, ""]), encoding="utf-8")
    print(f"    all of it: {path.relative_to(ROOT)}", flush=True)


__all__ = ["chosen_faults", "run_real"]
