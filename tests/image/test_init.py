"""Process 1 of the image, as a process of this machine."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INIT = [sys.executable, "-I", "-S", str(ROOT / "deploy" / "image" / "init.py")]
DEADLINE_SECONDS = 30


def _run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*INIT, sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )


@pytest.mark.parametrize("code", [0, 1, 7])
def test_exit_code_is_the_programs_own(code: int) -> None:
    """An orchestrator sees how the gateway ended."""
    assert _run(f"raise SystemExit({code})").returncode == code


def test_a_killed_program_is_told() -> None:
    """SIGKILL, as for a lack of memory, is 137."""
    assert _run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)").returncode == 137


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_reach_the_program(sent: signal.Signals) -> None:
    """The program's own handler runs, and its exit code is told."""
    program = (
        f"import signal, sys; signal.signal({int(sent)}, lambda *_: sys.exit(42)); "
        "print('ready', flush=True); signal.pause()"
    )
    process = subprocess.Popen([*INIT, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(sent)
        assert process.wait(DEADLINE_SECONDS) == 42


def test_a_gateway_under_it_drains_on_sigterm(tmp_path: Path) -> None:
    """Failure catalogue K04: process 1 gets the signal, the gateway says that it drains, and both end by themselves."""
    serve = [sys.executable, "-m", "gateway", "serve", "--embedded", "--data-dir", str(tmp_path / "data"), "--json"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RR_")}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*INIT, *serve, "--port", "0", "--admin-port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=environ | {"RR_DRAIN__SETTLE_SECONDS": "0"},
        )
    with process:
        assert process.stdout is not None
        assert "url" in json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
    assert "drain_started" in (tmp_path / "log").read_text()


def test_a_program_that_is_not_there() -> None:
    """One line, exit code 127."""
    told = subprocess.run(
        [*INIT, "no-such-program"], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert (told.returncode, told.stderr) == (127, "error: no-such-program: No such file or directory\n")


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted by prctl on Linux")
def test_orphans_are_reaped() -> None:
    """A grandchild whose parent has ended leaves no zombie behind, while the program goes on."""
    adopt = "import ctypes; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)"
    # The grandchild tells its number, ends, and is waited for: a zombie would keep its entry in /proc.
    program = (
        "import os, subprocess, sys, time; "
        "told = subprocess.run([sys.executable, '-c', "
        "'import os, sys; child = os.fork(); (print(child, flush=True) if child else None); sys.exit()'], "
        "capture_output=True, text=True).stdout; "
        "folder = '/proc/' + told.split()[0]; "
        f"end = time.monotonic() + {DEADLINE_SECONDS - 10}; "
        "[time.sleep(0.02) for _ in iter(lambda: os.path.exists(folder) and time.monotonic() < end, False)]; "
        "sys.exit(os.path.exists(folder))"
    )
    command = [sys.executable, "-c", f"{adopt}; import os, sys; os.execv(sys.argv[1], sys.argv[1:])"]
    told = subprocess.run(
        [*command, *INIT, sys.executable, "-c", program], timeout=DEADLINE_SECONDS, check=False, env=dict(os.environ)
    )
    assert told.returncode == 0
