"""The demo ends with its process, however that ends: no gateway and no server stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.app.demo.folder import DemoFolder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def children(pid: int) -> list[int]:
    """Of all its threads."""
    return [int(child) for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(what: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.fault
def test_a_check_breaks_things_and_finds_every_text_equal() -> None:
    """The main job on real input, without a person."""
    command = [sys.executable, "-m", "gateway", "demo", "--check", "--seconds", "6", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55, check=False)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result) == [
        "published", "received", "lost", "repeated", "reordered", "digests_equal", "faults", "seconds", "inputs",
        "answers", "interrupts", "operations", "storms_lost", "media",
    ]  # fmt: skip
    assert result["published"] == result["received"] > 0
    assert len(result["faults"]) >= 2
    assert "Traceback" not in done.stderr


@pytest.mark.fault
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_of_the_demo_outlives_it(how: signal.Signals, tmp_path: Path) -> None:
    """After a kill -9 its folder does, until the next demo begins."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--check", "--seconds", "60"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert wait_for(lambda: len(children(demo.pid)) >= 4, 20), "Valkey and three gateways"
        started = children(demo.pid)
        os.kill(demo.pid, how)
        code = demo.wait(20)

        assert code == (143 if how is signal.SIGTERM else -signal.SIGKILL)
        assert wait_for(lambda: not any(map(is_running, started)), 20)
        assert len(list(tmp_path.iterdir())) == (how is signal.SIGKILL)
        DemoFolder.make(tmp_path).remove()
        assert not list(tmp_path.iterdir())
    finally:
        demo.kill()
        demo.wait()
