"""What is too long for every commit: minutes of faults of every kind against running streams."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.soak

STREAM_SECONDS = 150


@pytest.mark.timeout(STREAM_SECONDS + 120)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_minutes_of_kills_drains_freezes_and_cuts_lose_nothing(seed: int) -> None:
    """Gateways die, drain and freeze, Redis is cut, over and over; every reader's text equals its source."""
    command = [sys.executable, "-m", "gateway", "demo", "--check", "--json"]

    done = subprocess.run(
        [*command, "--seconds", str(STREAM_SECONDS), "--seed", str(seed)], capture_output=True, text=True, check=False
    )

    tally = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tally["lost"], tally["repeated"], tally["reordered"]) == (0, 0, 0)
    assert tally["digests_equal"] is True
    assert len(tally["faults"]) >= STREAM_SECONDS // 10
