"""Both SDKs do what sdk/conformance demands: the short form of `make conformance`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT_JS = ROOT / "sdk/js/dist/esm/index.js"
SECONDS = 240


def conformance(*arguments: str) -> str:
    """What it printed. AssertionError with all of it when a scenario failed."""
    done = subprocess.run(
        [sys.executable, "-m", "sdk.conformance", "--short", *arguments],
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(SECONDS + 20)
def test_the_python_sdk_passes_every_scenario_of_the_short_form() -> None:
    printed = conformance("--sdk", "python")

    assert printed.splitlines()[-1].endswith(" passed, 0 failed")


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.skipif(not BUILT_JS.exists(), reason="sdk/js is not built: make conformance builds it")
def test_the_javascript_sdk_passes_every_scenario_of_the_short_form() -> None:
    printed = conformance("--sdk", "js")

    assert printed.splitlines()[-1].endswith(" passed, 0 failed")
