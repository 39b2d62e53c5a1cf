"""The demo's folder: gone with the demo, or with the next one when it was killed."""

import subprocess
import sys
from pathlib import Path

from gateway.app.demo.folder import DemoFolder

_KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.app.demo.folder import DemoFolder

folder = DemoFolder.make(Path(sys.argv[1]))
(folder.path / "data").mkdir()
(folder.path / "data" / "file").write_text("left")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_folder_of_a_killed_demo_goes_with_the_next_start(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()

    mine = DemoFolder.make(tmp_path)

    assert not left.exists()
    assert [mine.path] == list(tmp_path.iterdir())
    mine.remove()
    assert not list(tmp_path.iterdir())


def test_folders_of_live_demos_and_of_others_stay(tmp_path: Path) -> None:
    alive = DemoFolder.make(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner.lock").touch()
    (tmp_path / "relayrouter-demo-link").symlink_to(elsewhere)
    (tmp_path / "relayrouter-demo-no-lock").mkdir()
    before = {alive.path, *tmp_path.iterdir()}

    DemoFolder.make(tmp_path).remove()

    assert before == set(tmp_path.iterdir())
    assert (elsewhere / "owner.lock").exists()
    alive.remove()
